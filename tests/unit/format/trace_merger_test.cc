// Order: operations of interleaved blocks and of several traces come by time.
#include "tracefs/format/trace_merger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/support/trace_builder.h"

namespace tracefs::format {
namespace {

using test::TraceBuilder;

void AddAt(TraceBuilder& trace, uint64_t time, uint64_t id) {
  Event event;
  event.op = Op::read_;
  event.Set(Field::kTime, time);
  event.Set(Field::kFh, id);
  trace.Add(event);
}

void AddTo(TraceMerger& merger, const std::string& bytes,
           ReportSink report = {}) {
  TraceReaderOptions options;
  options.report = std::move(report);
  merger.Add(std::make_unique<TraceReader>(
      std::make_unique<MemorySource>(AsBytes(bytes)), std::move(options)));
}

std::vector<uint64_t> Ids(TraceMerger& merger) {
  std::vector<uint64_t> ids;
  Record record;
  while (merger.Next(&record) == ReadStep::kItem) {
    ids.push_back(record.event.Get(Field::kFh));
  }
  return ids;
}

TEST(TraceMergerTest, RandomThreadsComeOutAsIfSorted) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 200; ++round) {
    // Threads fill blocks of their own and hand them on at random moments.
    struct Thread {
      std::vector<std::pair<uint64_t, uint64_t>> events;
    };
    std::vector<Thread> threads(1 + random() % 5);
    TraceBuilder trace;
    std::vector<std::pair<uint64_t, uint64_t>> all;  // time, id
    uint64_t now = 1;
    uint64_t id = 0;
    const auto hand_on = [&](Thread& thread) {
      for (const auto& [time, event_id] : thread.events) {
        AddAt(trace, time, event_id);
      }
      thread.events.clear();
      uint64_t watermark = now + 1;
      for (const Thread& t : threads) {
        if (!t.events.empty()) {
          watermark = std::min(watermark, t.events.front().first);
        }
      }
      trace.EndBlock(watermark);
    };
    for (int i = 0; i < 300; ++i) {
      now += 1 + random() % 3;
      Thread& thread = threads[random() % threads.size()];
      thread.events.emplace_back(now, ++id);
      all.emplace_back(now, id);
      if (random() % 10 == 0) hand_on(threads[random() % threads.size()]);
    }
    for (Thread& thread : threads) hand_on(thread);
    trace.Finish();

    std::vector<uint64_t> expected;
    for (const auto& [time, event_id] : all) expected.push_back(event_id);
    TraceMerger merger;
    AddTo(merger, trace.bytes());
    ASSERT_EQ(Ids(merger), expected);
    EXPECT_EQ(merger.reader(0).stats().unordered_events, 0u);
  }
}

TEST(TraceMergerTest, EqualTimesKeepTheOrderOfBlocksAndMessages) {
  TraceBuilder trace;
  AddAt(trace, 10, 1);
  AddAt(trace, 10, 2);
  trace.EndBlock(5);
  AddAt(trace, 9, 0);
  AddAt(trace, 10, 3);
  AddAt(trace, 10, 4);
  trace.EndBlock(5);
  trace.Finish();
  TraceMerger merger;
  AddTo(merger, trace.bytes());
  EXPECT_EQ(Ids(merger), (std::vector<uint64_t>{0, 1, 2, 3, 4}));
}

TEST(TraceMergerTest, SeveralTracesAreMergedByRealTime) {
  // The second machine was booted an hour later.
  TraceBuilder first;
  TraceBuilder second;
  second.header().clock.monotonic_ns -= 500;
  for (uint64_t i = 0; i < 10; ++i) {
    AddAt(first, 1000 + 20 * i, 2 * i);
    AddAt(second, 510 + 20 * i, 2 * i + 1);
  }
  first.EndBlock();
  second.EndBlock();
  first.Finish();
  second.Finish();
  TraceMerger merger;
  AddTo(merger, first.bytes());
  AddTo(merger, second.bytes());
  std::vector<uint64_t> expected;
  for (uint64_t i = 0; i < 20; ++i) expected.push_back(i);
  EXPECT_EQ(Ids(merger), expected);
}

TEST(TraceMergerTest, AnEmptyTraceAmongOthersDoesNotHoldThemUp) {
  TraceBuilder empty;
  empty.Finish();
  const std::string no_trace = "not a trace";
  TraceBuilder full;
  AddAt(full, 1, 7);
  full.EndBlock();
  TraceMerger merger;
  AddTo(merger, empty.bytes());
  AddTo(merger, full.bytes());
  AddTo(merger, no_trace);
  EXPECT_EQ(Ids(merger), std::vector<uint64_t>{7});
  EXPECT_TRUE(merger.status(0).ok());
  EXPECT_FALSE(merger.status(2).ok());
}

TEST(TraceMergerTest, Malicious_AWatermarkThatNeverRisesCostsBoundedMemory) {
  TraceBuilder trace;
  constexpr uint64_t kBlocks = 2000;
  for (uint64_t i = 0; i < kBlocks; ++i) {
    AddAt(trace, 10'000 - i, i);  // each block is older than the last
    trace.EndBlock(0);
  }
  std::vector<std::string> reports;
  TraceMerger merger(/*memory_bytes=*/100'000);
  AddTo(merger, trace.bytes(), [&](const Report& r) {
    if (r.kind == ReportKind::kUnordered) reports.push_back(r.Text());
  });
  EXPECT_EQ(Ids(merger).size(), kBlocks);
  EXPECT_EQ(reports.size(), 1u);
  EXPECT_GT(merger.reader(0).stats().unordered_events, kBlocks / 2);
}

TEST(TraceMergerTest, InAHurryTheOldestKnownIsHandedOut) {
  TraceBuilder trace;
  AddAt(trace, 10, 1);
  AddAt(trace, 20, 2);
  trace.EndBlock(/*watermark_ns=*/15);
  class Growing : public MemorySource {
   public:
    using MemorySource::MemorySource;
    bool MayGrow() override { return true; }
  };
  TraceReaderOptions options;
  options.follow = true;
  TraceMerger merger;
  merger.Add(std::make_unique<TraceReader>(
      std::make_unique<Growing>(AsBytes(trace.bytes())), std::move(options)));
  Record record;
  ASSERT_EQ(merger.Next(&record), ReadStep::kItem);
  EXPECT_EQ(merger.Next(&record), ReadStep::kWait);
  EXPECT_EQ(merger.Next(&record), ReadStep::kWait);
  ASSERT_EQ(merger.Next(&record, /*hurry=*/true), ReadStep::kItem);
  EXPECT_EQ(record.event.Get(Field::kFh), 2u);
  EXPECT_EQ(merger.Next(&record, /*hurry=*/true), ReadStep::kWait);
  merger.reader(0).Stop();
  EXPECT_EQ(merger.Next(&record), ReadStep::kEnd);
}

}  // namespace
}  // namespace tracefs::format
