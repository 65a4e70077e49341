// Traces that are not one file from front to back: parts of a rotated trace,
// devices that end in zeros, snapshots, blocks that somebody else reads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/trace_builder.h"
#include "tracefs/format/marks.h"
#include "tracefs/format/process_message.h"
#include "tracefs/format/trace_merger.h"
#include "tracefs/format/trace_reader.h"

namespace tracefs::format {
namespace {

using test::TraceBuilder;

// Blocks 1 to 6 with an operation each, of which the pid is its block.
class PartsTest : public testing::Test {
 protected:
  PartsTest() {
    for (uint64_t block = 1; block <= 6; ++block) {
      Event event;
      event.op = Op::read_;
      event.Set(Field::kTime, TraceBuilder::kMonotonicNs + block);
      event.Set(Field::kPid, block);
      trace_.Add(event);
      trace_.EndBlock();
    }
    whole_ = trace_.bytes();
    for (const size_t at : trace_.frame_offsets()) ends_.push_back(at);
    ends_.push_back(whole_.size());
  }
  std::string Preamble() const { return whole_.substr(0, ends_[0]); }
  std::string Block(uint64_t from, uint64_t to) const {
    return whole_.substr(ends_[from], ends_[to] - ends_[from]);
  }
  std::string Mark(FrameKind kind, uint64_t part, uint64_t block) {
    return EncodePartMark(kind, trace_.serial(),
                          {.part = part, .block = block, .link = 0});
  }
  // Blocks 1 to 2, 3 to 4 and 5 to 6.
  std::string Part(uint64_t part) {
    std::string text = Preamble() + Mark(FrameKind::kPart, part, 1 + 2 * part) +
                       Block(0, 1) + Block(1 + 2 * part, 3 + 2 * part);
    if (part != 2) text += Mark(FrameKind::kPartEnd, part, 3 + 2 * part);
    return text;
  }

  // What is in these bytes: the pids.
  std::vector<uint64_t> Read(const std::string& bytes) {
    reports_.clear();
    TraceReaderOptions options;
    options.report = [this](const Report& report) {
      reports_.push_back(report.Text());
    };
    TraceReader reader(std::make_unique<MemorySource>(AsBytes(bytes)),
                       std::move(options));
    std::vector<uint64_t> pids;
    std::unique_ptr<BlockDecoder> block;
    for (;;) {
      const auto step = reader.NextBlock(&block);
      EXPECT_TRUE(step.ok()) << step.status().message();
      if (!step.ok() || *step != ReadStep::kItem) break;
      Record record;
      while (!block->at_end()) {
        block->Next(&record);
        pids.push_back(record.event.Get(Field::kPid));
      }
    }
    stats_ = reader.stats();
    return pids;
  }
  bool Told(std::string_view text) const {
    return std::ranges::any_of(reports_, [&](const std::string& report) {
      return report.find(text) != std::string::npos;
    });
  }

  using Pids = std::vector<uint64_t>;
  TraceBuilder trace_;
  std::string whole_;
  std::vector<size_t> ends_;
  std::vector<std::string> reports_;
  ReadStats stats_;
};

TEST_F(PartsTest, EachPartSaysWhereItBelongs) {
  EXPECT_EQ(Read(Part(0)), (Pids{1, 2}));
  EXPECT_EQ(stats_.first_part, 0u);
  EXPECT_EQ(stats_.goes_on, 1u);
  EXPECT_EQ(stats_.missing_blocks, 0u);
  EXPECT_FALSE(stats_.Bad());
  EXPECT_EQ(reports_, std::vector<std::string>{"the trace goes on in part 1"});

  EXPECT_EQ(Read(Part(1)), (Pids{3, 4}));
  EXPECT_EQ(stats_.first_part, 1u);
  EXPECT_EQ(stats_.goes_on, 2u);
  EXPECT_EQ(stats_.missing_blocks, 0u);
  EXPECT_FALSE(stats_.no_header);
  EXPECT_FALSE(stats_.Bad());
  EXPECT_TRUE(Told("part 1 of a rotated trace: blocks 1 to 2 are in parts"));

  EXPECT_EQ(Read(Part(2)), (Pids{5, 6}));
  EXPECT_EQ(stats_.first_part, 2u);
  EXPECT_EQ(stats_.goes_on, 0u);
  EXPECT_EQ(stats_.missing_blocks, 0u);
  EXPECT_TRUE(stats_.Bad()) << "it has no end";
}

TEST_F(PartsTest, PartsThatFollowEachOtherAreOneTrace) {
  EXPECT_EQ(Read(Part(0) + Part(1) + Part(2)), (Pids{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(stats_.missing_blocks, 0u);
  EXPECT_EQ(stats_.duplicate_blocks, 0u);
  EXPECT_EQ(stats_.damaged_bytes, 0u);
  EXPECT_EQ(stats_.first_part, 0u);
  EXPECT_EQ(stats_.goes_on, 0u);
}

TEST_F(PartsTest, DataLoss_APartBetweenOrABlockWithinIsMissed) {
  EXPECT_EQ(Read(Part(0) + Part(2)), (Pids{1, 2, 5, 6}));
  EXPECT_EQ(stats_.missing_blocks, 2u);
  EXPECT_TRUE(Told("2 blocks from block 3 on are missing"));
  // Behind a mark that says where it begins, the first block is missing.
  EXPECT_EQ(Read(Preamble() + Mark(FrameKind::kPart, 1, 3) + Block(0, 1) +
                 Block(4, 5)),
            (Pids{4}));
  EXPECT_EQ(stats_.missing_blocks, 1u);
  EXPECT_TRUE(Told("block 3 is missing"));
  // What the parts before have is not missing in this one.
  EXPECT_EQ(Read(Preamble() + Mark(FrameKind::kPart, 1, 3) + Block(3, 4)),
            (Pids{3}));
  EXPECT_EQ(stats_.missing_blocks, 1u) << "its copy of block 0";
  EXPECT_TRUE(Told("block 0 is missing"));
  EXPECT_TRUE(stats_.no_header);
}

TEST_F(PartsTest, Malicious_ABlock0WithoutAMarkIsOneThatWasSeen) {
  EXPECT_EQ(Read(whole_ + Block(0, 1)), (Pids{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(stats_.duplicate_blocks, 1u);
  // Nor does a mark excuse more than one, or another.
  EXPECT_EQ(Read(Part(0) + Preamble() + Mark(FrameKind::kPart, 1, 3) +
                 Block(0, 1) + Block(0, 1) + Block(3, 4)),
            (Pids{1, 2, 3}));
  EXPECT_EQ(stats_.duplicate_blocks, 1u);
  EXPECT_EQ(Read(Part(0) + Preamble() + Mark(FrameKind::kPart, 1, 3) +
                 Block(2, 3) + Block(3, 4)),
            (Pids{1, 2, 3}));
  EXPECT_EQ(stats_.duplicate_blocks, 1u);
}

// Its blocks have gaps, and their sum tells whether all are there.
TEST_F(PartsTest, DataLoss_WhatASnapshotPromisesIsCounted) {
  const auto snapshot = [&](uint64_t blocks) {
    return Preamble() +
           EncodeSnapshotMark(trace_.serial(), {.number = 1,
                                                .blocks = blocks,
                                                .events = 2,
                                                .overwritten_events = 4,
                                                .reason = "signal"}) +
           Block(0, 1) + Block(3, 4) + Block(5, 6);
  };
  EXPECT_EQ(Read(snapshot(2)), (Pids{3, 5}));
  EXPECT_EQ(stats_.missing_blocks, 0u);
  EXPECT_FALSE(stats_.Bad());
  EXPECT_EQ(reports_, std::vector<std::string>{
                          "a snapshot of a flight recorder (signal): 2 "
                          "operations, and 4 before them that were "
                          "overwritten"});
  EXPECT_EQ(Read(snapshot(4)), (Pids{3, 5}));
  EXPECT_EQ(stats_.missing_blocks, 2u);
  EXPECT_TRUE(Told("2 blocks from block 6 on are missing"));
  EXPECT_EQ(Read(snapshot(1)), (Pids{3, 5}));
  EXPECT_EQ(stats_.missing_blocks, 0u);
}

TEST_F(PartsTest, OnlyADeviceEndsInZeros) {
  EXPECT_EQ(Read(whole_ + std::string(500, '\0')), (Pids{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(stats_.damaged_bytes + stats_.cut_bytes, 500u);
  for (const std::string_view chain : {"device", " device"}) {
    trace_ = TraceBuilder(std::string(chain));
    trace_.EndBlock(1);
    EXPECT_EQ(Read(trace_.bytes() + std::string(500, '\0') + "rest"), Pids());
    EXPECT_EQ(stats_.damaged_bytes + stats_.cut_bytes, 0u) << chain;
  }
  // A byte that is none, and it is damage.
  EXPECT_NE((Read(trace_.bytes() + std::string(39, '\0') + "x" +
                  std::string(500, '\0')),
             stats_.damaged_bytes),
            0u);
  trace_ = TraceBuilder("nodevice");
  trace_.EndBlock(1);
  EXPECT_EQ(Read(trace_.bytes() + std::string(500, '\0')), Pids());
  EXPECT_NE(stats_.damaged_bytes + stats_.cut_bytes, 0u);
}

// --- Blocks that somebody else reads ----------------------------------------

TEST_F(PartsTest, TheFirstBlockCanBeReadAheadAndTakenAway) {
  TraceMerger merger;
  merger.Add(std::make_unique<TraceReader>(
      std::make_unique<MemorySource>(AsBytes(whole_)), TraceReaderOptions()));
  EXPECT_EQ(merger.TakeFirst(0), nullptr) << "nothing was read";
  ASSERT_TRUE(merger.ReadFirst(0).ok());
  ASSERT_TRUE(merger.ReadFirst(0).ok());
  EXPECT_EQ(merger.reader(0).stats().blocks, 1u) << "once";
  // It describes the trace, and has no operation.
  EXPECT_EQ(merger.TakeFirst(0), nullptr);
  Record record;
  for (uint64_t pid = 1; pid <= 6; ++pid) {
    ASSERT_EQ(merger.Next(&record), ReadStep::kItem);
    EXPECT_EQ(record.event.Get(Field::kPid), pid);
  }
  EXPECT_EQ(merger.Next(&record), ReadStep::kEnd);
  EXPECT_TRUE(merger.ReadFirst(0).ok());
}

TEST_F(PartsTest, ABlockThatIsTakenAwayAndGivenBackIsThere) {
  // Without block 0, the first one has an operation.
  const std::string bytes = Preamble() + Block(1, 3);
  TraceMerger merger;
  merger.Add(std::make_unique<TraceReader>(
      std::make_unique<MemorySource>(AsBytes(bytes)), TraceReaderOptions()));
  ASSERT_TRUE(merger.ReadFirst(0).ok());
  const size_t with = merger.memory_bytes();
  std::unique_ptr<BlockDecoder> first = merger.TakeFirst(0);
  ASSERT_NE(first, nullptr);
  EXPECT_LT(merger.memory_bytes(), with);
  EXPECT_EQ(merger.TakeFirst(0), nullptr);
  merger.Give(0, std::move(first));
  EXPECT_EQ(merger.memory_bytes(), with);
  Record record;
  ASSERT_EQ(merger.Next(&record), ReadStep::kItem);
  EXPECT_EQ(record.event.Get(Field::kPid), 1u);
  ASSERT_EQ(merger.Next(&record), ReadStep::kItem);
  EXPECT_EQ(record.event.Get(Field::kPid), 2u);
  const size_t used = merger.memory_bytes();
  EXPECT_EQ(merger.Next(&record), ReadStep::kEnd);
  merger.ReleaseMemory();
  EXPECT_LT(merger.memory_bytes(), used);
}

TEST_F(PartsTest, AnInputThatIsNoTraceIsToldByReadFirst) {
  const std::string bytes = "something else, and long enough to be looked at";
  TraceMerger merger;
  merger.Add(std::make_unique<TraceReader>(
      std::make_unique<MemorySource>(AsBytes(bytes)), TraceReaderOptions()));
  EXPECT_EQ(merger.ReadFirst(0).code(), StatusCode::kCorrupt);
  EXPECT_EQ(merger.ReadFirst(0).code(), StatusCode::kCorrupt) << "again";
  EXPECT_EQ(merger.status(0).code(), StatusCode::kCorrupt);
}

TEST_F(PartsTest, MemoryIsGivenBackWhileAReaderWaits) {
  TraceReader reader(std::make_unique<MemorySource>(AsBytes(whole_)),
                     TraceReaderOptions());
  std::unique_ptr<BlockDecoder> block;
  for (uint64_t number = 0; number <= 6; ++number) {
    ASSERT_TRUE(reader.NextBlock(&block).ok());
    EXPECT_EQ(block->sequence(), number);
    EXPECT_EQ(reader.frames().offset(), ends_[number + 1]);
    // Between any two, and it goes on from there.
    reader.ReleaseMemory();
    EXPECT_EQ(reader.frames().offset(), ends_[number + 1]);
    reader.ReleaseMemory();
  }
  EXPECT_EQ(reader.memory_bytes(), 0u) << "all of it was read";
  ASSERT_EQ(*reader.NextBlock(&block), ReadStep::kEnd);
  EXPECT_EQ(reader.stats().damaged_bytes, 0u);
}

TEST_F(PartsTest, ProcessesAreGoneThroughByThemselves) {
  TraceBuilder trace;
  std::vector<std::byte> memory(4096);
  for (uint64_t n = 1; n <= 3; ++n) {
    Event event;
    event.op = Op::read_;
    event.Set(Field::kTime, 10 * n);
    trace.Add(event);
    ProcessRecord record;
    record.kind =
        n == 2 ? ProcessRecord::Kind::kExit : ProcessRecord::Kind::kExec;
    record.time_ns = 10 * n + 1;
    record.process.pid = static_cast<uint32_t>(n);
    MessageWriter out(memory);
    ASSERT_TRUE(WriteProcessRecord(out, record));
    trace.AddBytes(AsText(out.bytes()));
    trace.EndBlock();
  }
  std::vector<std::pair<uint32_t, ProcessRecord::Kind>> seen;
  TraceReaderOptions options;
  options.process = [&](const ProcessRecord& record) {
    seen.emplace_back(record.process.pid, record.kind);
  };
  TraceMerger merger;
  merger.Add(std::make_unique<TraceReader>(
      std::make_unique<MemorySource>(AsBytes(trace.bytes())), options));
  for (uint32_t n = 1; n <= 3; ++n) {
    ASSERT_EQ(merger.NextProcess(), ReadStep::kItem);
    ASSERT_EQ(seen.size(), n) << "one at a time";
    EXPECT_EQ(seen.back().first, n);
    EXPECT_EQ(seen.back().second,
              n == 2 ? ProcessRecord::Kind::kExit : ProcessRecord::Kind::kExec);
  }
  EXPECT_EQ(merger.NextProcess(), ReadStep::kEnd);
}

}  // namespace
}  // namespace tracefs::format
