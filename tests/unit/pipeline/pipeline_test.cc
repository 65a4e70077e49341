// Events from many threads into blocks, losses, tracers that come and go. The
// output is a piece of memory that can be told to fail; it is read back by the
// reading library.
#include "tracefs/pipeline/pipeline.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "drivers/output/framing.h"
#include "tracefs/base/clock.h"
#include "tracefs/format/trace_reader.h"

namespace tracefs {
namespace {

// What an output received; outlives the driver.
struct Memory {
  std::mutex mu;
  std::string bytes;
  std::atomic<int> failing_writes{0};  // this many next writes are refused
};

class MemoryDriver final : public OutputDriver {
 public:
  explicit MemoryDriver(Memory& memory, size_t block)
      : memory_(memory), block_(block) {}
  Status Initialize(const TraceIdentity& identity) override {
    memory_.bytes = identity.preamble;
    return Status::Ok();
  }
  Status Write(ByteSpan header, ByteSpan payload, const BlockInfo&) override {
    if (memory_.failing_writes.load() > 0) {
      --memory_.failing_writes;
      return Status::System(ENOSPC, "memory");
    }
    std::lock_guard lock(memory_.mu);
    memory_.bytes += AsText(header);
    memory_.bytes += AsText(payload);
    return Status::Ok();
  }
  Status Flush() override { return Status::Ok(); }
  Status Release() override { return Status::Ok(); }
  size_t PreferredBlockSize() const override { return block_; }

 private:
  Memory& memory_;
  const size_t block_;
};

// Keeps events whose offset is even, or all.
class TestFilter final : public InputFilter {
 public:
  explicit TestFilter(bool only_even) : only_even_(only_even) {}
  FilterNeeds Needs(Op) const override {
    FilterNeeds needs;
    if (!only_even_) needs.constant = Verdict::kKeep;
    return needs;
  }
  Verdict DecideEarly(Event& e) const override {
    return Keep(e) ? Verdict::kKeep : Verdict::kDrop;
  }
  std::string Describe(Op) const override { return "test filter"; }
  bool Keep(Event& e) const override {
    return !only_even_ || e.Get(Field::kOffset) % 2 == 0;
  }

 private:
  const bool only_even_;
};

// The same, and says that it reads paths to know.
class PathFilter final : public InputFilter {
 public:
  explicit PathFilter(bool only_even) : only_even_(only_even) {}
  FilterNeeds Needs(Op) const override {
    FilterNeeds needs;
    needs.paths = true;
    return needs;
  }
  Verdict DecideEarly(Event&) const override { return Verdict::kUndecided; }
  bool Keep(Event& e) const override {
    return !only_even_ || e.Get(Field::kOffset) % 2 == 0;
  }

 private:
  const bool only_even_;
};

// Writes the time, the offset and the thread, `padding` bytes and the data.
class TestDriver final : public AssemblyDriver {
 public:
  explicit TestDriver(size_t padding, bool before = false)
      : padding_(padding, 'x'), before_(before) {}
  AssemblyNeeds Needs(Op) const override {
    return {.after = true, .before = before_};
  }
  bool Assemble(Event& e, BlockBuilder& block) const override {
    format::MessageWriter& w = block.writer();
    w.Begin(format::OperationMessage(e.op, e.before));
    w.Put<uint64_t>(Info(Field::kTime).arg_id, e.Get(Field::kTime));
    w.Put<uint64_t>(Info(Field::kOffset).arg_id, e.Get(Field::kOffset));
    w.Put<uint32_t>(Info(Field::kTid).arg_id,
                    static_cast<uint32_t>(e.Get(Field::kTid)));
    w.PutText(Info(Field::kXattrName).arg_id, padding_);
    if (!e.data.empty()) w.PutBytes(Info(Field::kData).arg_id, e.data);
    return w.End();
  }

 private:
  const std::string padding_;
  const bool before_;
};

TracerParts Parts(Memory& memory, uint32_t id, bool only_even = false,
                  size_t padding = 10, bool before = false) {
  TracerParts parts;
  parts.id = id;
  parts.filter = std::make_unique<TestFilter>(only_even);
  parts.assembly.push_back(std::make_unique<TestDriver>(padding, before));
  parts.output = MakeFraming(std::make_unique<MemoryDriver>(memory, 4096));
  parts.header.clock = ClockPair::Now();
  parts.serial[0] = std::byte{static_cast<uint8_t>(id)};
  parts.output_chain = "memory";
  return parts;
}

// An operation that lasts as long as this.
class Write {
 public:
  explicit Write(EventSink& sink, uint32_t thread = 1, uint64_t offset = 0)
      : recording_(sink, Op::write_, sink.InterestIn(Op::write_)) {
    event().Set(Field::kOffset, offset);
    event().Set(Field::kTid, thread);
    if (recording_.Wants(EventSink::kBefore)) recording_.Before();
  }
  Event& event() { return recording_.event; }
  void Park() { recording_.Park(); }
  // `reply`: what others see and do when the caller goes on.
  void End(const std::function<void()>& reply = [] {}) {
    event().SetResult(1, 0);
    EXPECT_EQ(recording_.End([&] {
      reply();
      return 7;
    }),
              7);
  }

 private:
  Recording recording_;
};

void Send(EventSink& sink, uint32_t thread, uint64_t offset) {
  if (sink.InterestIn(Op::write_) != 0) Write(sink, thread, offset).End();
}

struct Decoded {
  std::map<uint32_t, std::multiset<uint64_t>> offsets;  // by thread
  std::vector<std::string> changes;
  size_t events = 0;
  size_t before = 0;
  size_t without_path = 0;
  std::vector<size_t> data;        // bytes of each operation that has any
  uint64_t watermark = 0;          // the highest
  std::vector<uint64_t> first_ns;  // of each block with operations
  format::ReadStats stats;
};

Decoded Read(Memory& memory) {
  std::lock_guard lock(memory.mu);
  Decoded decoded;
  format::TraceReader reader(
      std::make_unique<format::MemorySource>(AsBytes(memory.bytes)),
      {.name = "memory", .report = [&](const format::Report& report) {
         if (report.kind == format::ReportKind::kChange) {
           decoded.changes.emplace_back(report.detail);
         }
       }});
  std::unique_ptr<format::BlockDecoder> block;
  for (;;) {
    const Result<format::ReadStep> step = reader.NextBlock(&block);
    EXPECT_TRUE(step.ok()) << step.status().message();
    if (!step.ok() || *step != format::ReadStep::kItem) break;
    decoded.watermark = std::max(decoded.watermark, block->head().watermark_ns);
    if (block->head().events != 0) {
      decoded.first_ns.push_back(block->head().first_ns);
    }
    while (!block->at_end()) {
      format::Record record;
      block->Next(&record);
      if (record.event.before) {
        ++decoded.before;
        continue;
      }
      ++decoded.events;
      if (record.event.node == 0) ++decoded.without_path;
      if (!record.event.data.empty()) {
        decoded.data.push_back(record.event.data.size());
      }
      decoded.offsets[static_cast<uint32_t>(record.event.Get(Field::kTid))]
          .insert(record.event.Get(Field::kOffset));
    }
  }
  decoded.stats = reader.stats();
  return decoded;
}

constexpr std::chrono::milliseconds kQuick{1};

TEST(PipelineTest, WithoutTracersNobodyIsInterested) {
  Pipeline pipeline(kQuick);
  EXPECT_EQ(pipeline.InterestIn(Op::write_), 0u);
}

// Operations end in another order than they began: whoever seeks by time needs
// the earliest begin.
TEST(PipelineTest, ABlockTellsTheEarliestBeginOfItsOperations) {
  Memory memory;
  Pipeline pipeline(std::chrono::hours(1));
  ASSERT_TRUE(pipeline.Add(Parts(memory, 1)).ok());
  const uint64_t now = MonotonicNs();
  for (const uint64_t begin : {now - 50, now - 90, now - 20}) {
    Write write(pipeline);
    write.event().Set(Field::kTime, begin);
    write.End();
  }
  ASSERT_TRUE(pipeline.Stop("test").ok());
  EXPECT_EQ(Read(memory).first_ns, std::vector<uint64_t>{now - 90});
}

TEST(PipelineTest, EveryEventOfEveryThreadArrivesOnce) {
  constexpr uint64_t kEvents = 20000;
  Memory memory;
  Pipeline pipeline(kQuick);
  ASSERT_TRUE(pipeline.Add(Parts(memory, 1)).ok());
  std::vector<std::thread> threads;
  for (uint32_t t = 1; t <= 4; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kEvents; ++i) Send(pipeline, t, i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(pipeline.Stop("test").ok());
  const Decoded decoded = Read(memory);
  EXPECT_EQ(decoded.events, 4 * kEvents);
  for (uint32_t t = 1; t <= 4; ++t) {
    const auto& offsets = decoded.offsets.at(t);
    EXPECT_EQ(offsets.size(), kEvents);
    EXPECT_EQ(std::set<uint64_t>(offsets.begin(), offsets.end()).size(),
              kEvents);
  }
}

TEST(PipelineTest, FilterDecidesWhatIsKept) {
  Memory memory;
  Pipeline pipeline(kQuick);
  ASSERT_TRUE(pipeline.Add(Parts(memory, 1, /*only_even=*/true)).ok());
  for (uint64_t i = 0; i < 100; ++i) Send(pipeline, 1, i);
  ASSERT_TRUE(pipeline.Stop("test").ok());
  EXPECT_EQ(Read(memory).events, 50u);
}

TEST(PipelineTest, BeforeMessagesAreWrittenBesideTheOthers) {
  Memory memory;
  Pipeline pipeline(kQuick);
  ASSERT_TRUE(pipeline.Add(Parts(memory, 1, false, 10, true)).ok());
  for (uint64_t i = 0; i < 10; ++i) Send(pipeline, 1, i);
  ASSERT_TRUE(pipeline.Stop("test").ok());
  const Decoded decoded = Read(memory);
  EXPECT_EQ(decoded.before, 10u);
  EXPECT_EQ(decoded.events, 10u);
}

TEST(PipelineTest, UnbufferedEventsAreThereBeforeTheReply) {
  Memory memory;
  Pipeline pipeline(std::chrono::hours(1));
  TracerParts parts = Parts(memory, 1);
  parts.unbuffered = true;
  ASSERT_TRUE(pipeline.Add(std::move(parts)).ok());
  ASSERT_TRUE((pipeline.InterestIn(Op::write_) & EventSink::kBeforeReply) != 0);
  Write(pipeline).End([&] { EXPECT_EQ(Read(memory).events, 1u); });
  ASSERT_TRUE(pipeline.Stop("test").ok());
  EXPECT_EQ(Read(memory).events, 1u);
}

TEST(PipelineTest, OldBlocksAreHandedOnWithoutFurtherEvents) {
  Memory memory;
  Pipeline pipeline(kQuick);
  ASSERT_TRUE(pipeline.Add(Parts(memory, 1)).ok());
  Send(pipeline, 1, 1);
  for (int i = 0; i < 5000 && Read(memory).events == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(Read(memory).events, 1u);
}

TEST(PipelineTest, DataLoss_RefusedBlocksAreCountedExactlyInTheTrace) {
  constexpr uint64_t kEvents = 5000;
  Memory memory;
  Pipeline pipeline(std::chrono::hours(1));
  ASSERT_TRUE(pipeline.Add(Parts(memory, 1)).ok());
  for (uint64_t i = 0; i < kEvents; ++i) {
    if (i == 1000) memory.failing_writes = 3;
    Send(pipeline, 1, i);
  }
  EXPECT_FALSE(pipeline.Stop("test").ok());  // it tells that something was lost
  const Decoded decoded = Read(memory);
  EXPECT_LT(decoded.events, kEvents);
  EXPECT_EQ(decoded.events + decoded.stats.lost_events, kEvents);
  EXPECT_EQ(decoded.stats.missing_blocks, 0u);
}

// It is in a block of its own, in which there is no operation to count.
TEST(PipelineTest, DataLoss_AnAlarmThatIsRefusedIsCounted) {
  Memory memory;
  Pipeline pipeline(std::chrono::hours(1));
  ASSERT_TRUE(pipeline.Add(Parts(memory, 1)).ok());
  format::AlarmRecord alarm;
  alarm.rule = 1;
  for (const int refused : {1, 0, 1}) {
    memory.failing_writes = refused;
    EXPECT_TRUE(pipeline.Tell(1, alarm, {}).ok());
  }
  EXPECT_FALSE(pipeline.Stop("test").ok());
  const Decoded decoded = Read(memory);
  EXPECT_EQ(decoded.stats.losses.at("output_error"), 2u);
}

// Names may be longer than a block; longer than any is nothing that a request
// can hold.
TEST(PipelineTest, DataLoss_AMessageLargerThanABlockHasOneOfItsOwn) {
  for (const auto& [padding, fits] :
       {std::pair(5000, true), {300'000, true}, {600'000, false}}) {
    Memory memory;
    Pipeline pipeline(kQuick);
    ASSERT_TRUE(pipeline.Add(Parts(memory, 1, false, padding)).ok());
    Send(pipeline, 1, 1);
    ASSERT_TRUE(pipeline.Stop("test").ok());
    const Decoded decoded = Read(memory);
    EXPECT_EQ(decoded.events, fits ? 1u : 0u) << padding;
    EXPECT_EQ(decoded.stats.lost_events, fits ? 0u : 1u) << padding;
  }
}

// Room for what has begun is asked for with each block, the first one included,
// and grows with the threads that record.
TEST(PipelineTest, FailAsksForRoomForWhatIsUnderWay) {
  class Room final : public OutputFilter {
   public:
    Room(std::vector<uint64_t>* asked, std::unique_ptr<OutputFilter> next)
        : asked_(asked), next_(std::move(next)) {}
    Status Initialize(const TraceIdentity& identity) override {
      return next_->Initialize(identity);
    }
    Status Write(ByteSpan block, const BlockInfo& info) override {
      asked_->push_back(info.under_way);
      return next_->Write(block, info);
    }
    Status Flush() override { return next_->Flush(); }
    Status Release() override { return next_->Release(); }
    size_t PreferredBlockSize() const override { return 65536; }

   private:
    std::vector<uint64_t>* const asked_;
    const std::unique_ptr<OutputFilter> next_;
  };
  for (const bool fails : {false, true}) {
    Memory memory;
    std::vector<uint64_t> asked;
    Pipeline pipeline(std::chrono::hours(1));
    TracerParts parts = Parts(memory, 1);
    if (fails) parts.when_full = LossPolicy::kFail;
    parts.output = std::make_unique<Room>(&asked, std::move(parts.output));
    ASSERT_TRUE(pipeline.Add(std::move(parts)).ok());
    std::vector<std::thread> threads;
    for (uint32_t t = 1; t <= 40; ++t) {
      threads.emplace_back([&, t] { Send(pipeline, t, 1); });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_TRUE(pipeline.FlushAll().ok());
    static_cast<void>(pipeline.Stop("test"));
    ASSERT_GE(asked.size(), 2u);
    EXPECT_EQ(asked.front() != 0, fails);
    EXPECT_EQ(asked.back() != 0, fails);
    // A block and a message of each.
    EXPECT_GE(asked.back(), fails ? 40u * 2 * 65536 : 0u);
  }
}

TEST(PipelineTest, DataLargerThanABlockHasOneOfItsOwn) {
  const std::vector<std::byte> data(1 << 20, std::byte{7});
  Memory memory;
  Pipeline pipeline(kQuick);
  ASSERT_TRUE(pipeline.Add(Parts(memory, 1)).ok());
  for (const size_t bytes : {size_t{100}, data.size(), size_t{200}}) {
    Write write(pipeline);
    write.event().data = ByteSpan(data).first(bytes);
    write.End();
  }
  ASSERT_TRUE(pipeline.Stop("test").ok());
  const Decoded decoded = Read(memory);
  EXPECT_EQ(decoded.data, (std::vector<size_t>{100, data.size(), 200}));
  EXPECT_EQ(decoded.stats.lost_events, 0u);
}

TEST(PipelineTest, Race_TracersComeAndGoWithoutTouchingTheOthers) {
  constexpr uint64_t kEvents = 30000;
  Memory lasting;
  Pipeline pipeline(kQuick);
  ASSERT_TRUE(pipeline.Add(Parts(lasting, 1)).ok());
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (uint32_t t = 1; t <= 2; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kEvents; ++i) Send(pipeline, t, i);
    });
  }
  std::thread changer([&] {
    while (!done) {
      Memory passing;
      ASSERT_TRUE(pipeline.Add(Parts(passing, 2, true)).ok());
      ASSERT_TRUE(pipeline.Remove(2, "removed").ok());
      const Decoded decoded = Read(passing);
      EXPECT_EQ(decoded.stats.lost_events, 0u);
    }
  });
  for (std::thread& thread : threads) thread.join();
  done = true;
  changer.join();
  ASSERT_TRUE(pipeline.Stop("test").ok());
  const Decoded decoded = Read(lasting);
  EXPECT_EQ(decoded.events, 2 * kEvents);
  for (const auto& [thread, offsets] : decoded.offsets) {
    EXPECT_EQ(std::set<uint64_t>(offsets.begin(), offsets.end()).size(),
              kEvents);
  }
}

TEST(PipelineTest, Race_SuspendedTracersAndOtherFiltersLeaveTheOthersAlone) {
  constexpr uint64_t kEvents = 30000;
  Memory lasting;
  Memory changing;
  Pipeline pipeline(kQuick);
  ASSERT_TRUE(pipeline.Add(Parts(lasting, 1)).ok());
  ASSERT_TRUE(pipeline.Add(Parts(changing, 2)).ok());
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (uint32_t t = 1; t <= 2; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t i = 0; i < kEvents; ++i) Send(pipeline, t, i);
    });
  }
  std::thread changer([&] {
    while (!done) {
      ASSERT_TRUE(pipeline.Suspend(2).ok());
      ASSERT_TRUE(
          pipeline
              .SetFilter(2, std::make_unique<TestFilter>(true), "even", "dag")
              .ok());
      ASSERT_TRUE(pipeline.Resume(2).ok());
      ASSERT_TRUE(
          pipeline
              .SetFilter(2, std::make_unique<TestFilter>(false), "all", "dag")
              .ok());
      for (const TracerStats& stats : pipeline.Stats()) {
        EXPECT_LE(stats.written + stats.TotalLost(), stats.encoded);
      }
    }
  });
  for (std::thread& thread : threads) thread.join();
  done = true;
  changer.join();
  const std::vector<TracerStats> stats = pipeline.Stats();
  ASSERT_EQ(stats.size(), 2u);
  EXPECT_EQ(stats[0].seen, 2 * kEvents);
  EXPECT_EQ(stats[0].matched, 2 * kEvents);
  EXPECT_EQ(stats[0].encoded, 2 * kEvents);
  ASSERT_TRUE(pipeline.Stop("test").ok());
  for (Memory* memory : {&lasting, &changing}) {
    const Decoded decoded = Read(*memory);
    EXPECT_EQ(decoded.stats.lost_events, 0u);
    for (const auto& [thread, offsets] : decoded.offsets) {
      EXPECT_EQ(std::set<uint64_t>(offsets.begin(), offsets.end()).size(),
                offsets.size());
    }
  }
  EXPECT_EQ(Read(lasting).events, 2 * kEvents);
  EXPECT_EQ(Read(changing).events, stats[1].encoded);
}

TEST(PipelineTest, SuspendedTracerSeesNothingAndItsTraceSaysSo) {
  Memory memory;
  Pipeline pipeline(kQuick);
  ASSERT_TRUE(pipeline.Add(Parts(memory, 1)).ok());
  Send(pipeline, 1, 1);
  ASSERT_TRUE(pipeline.Suspend(1).ok());
  ASSERT_TRUE(pipeline.Suspend(1).ok());  // already
  EXPECT_EQ(pipeline.InterestIn(Op::write_), 0u);
  EXPECT_EQ(Read(memory).events, 1u);  // what it had is written
  Send(pipeline, 1, 2);
  EXPECT_FALSE(pipeline.Stats().at(0).running);
  ASSERT_TRUE(pipeline.Resume(1).ok());
  ASSERT_TRUE(pipeline.Resume(1).ok());
  EXPECT_TRUE(pipeline.Stats().at(0).running);
  Send(pipeline, 1, 3);
  EXPECT_EQ(pipeline.Stats().at(0).seen, 2u);
  ASSERT_TRUE(pipeline.Stop("test").ok());
  const Decoded decoded = Read(memory);
  EXPECT_EQ(decoded.offsets.at(1), (std::multiset<uint64_t>{1, 3}));
  EXPECT_EQ(decoded.changes,
            (std::vector<std::string>{"tracer.state=stopped",
                                      "tracer.state=running"}));
  EXPECT_TRUE(decoded.stats.final_record.has_value());
}

TEST(PipelineTest, SuspendedTracersAreEndedWithTheOthers) {
  Memory memory;
  Pipeline pipeline(kQuick);
  ASSERT_TRUE(pipeline.Add(Parts(memory, 1)).ok());
  ASSERT_TRUE(pipeline.Suspend(1).ok());
  ASSERT_TRUE(pipeline.Stop("test").ok());
  ASSERT_TRUE(Read(memory).stats.final_record.has_value());
  EXPECT_EQ(Read(memory).stats.final_record->end_reason, "test");
}

TEST(PipelineTest, FilterIsSwappedAndTheTraceSaysSo) {
  Memory memory;
  Pipeline pipeline(kQuick);
  ASSERT_TRUE(pipeline.Add(Parts(memory, 1)).ok());
  Send(pipeline, 1, 1);
  ASSERT_TRUE(
      pipeline
          .SetFilter(1, std::make_unique<TestFilter>(true), "even", "even ?")
          .ok());
  Send(pipeline, 1, 3);
  Send(pipeline, 1, 4);
  const TracerStats stats = pipeline.Stats().at(0);
  EXPECT_EQ(stats.seen, 3u);
  EXPECT_EQ(stats.matched, 2u);
  ASSERT_TRUE(pipeline.Stop("test").ok());
  const Decoded decoded = Read(memory);
  EXPECT_EQ(decoded.offsets.at(1), (std::multiset<uint64_t>{1, 4}));
  EXPECT_EQ(decoded.changes, (std::vector<std::string>{"filter.text=even",
                                                       "filter.dag=even ?"}));
}

// While an operation waits for its reply its tracer goes and another one comes,
// in the same place: nothing of what the first one decided holds for it.
TEST(PipelineTest, Race_ATracerDecidesForItselfWhatItsPredecessorHasDecided) {
  for (const bool first_keeps : {false, true}) {
    Memory first;
    Memory second;
    Pipeline pipeline(kQuick);
    TracerParts parts = Parts(first, 1);
    parts.filter = std::make_unique<PathFilter>(/*only_even=*/!first_keeps);
    ASSERT_TRUE(pipeline.Add(std::move(parts)).ok());
    // The first of a thread has no block yet, and cannot wait.
    Write(pipeline, 1, 2).End();
    Write(pipeline, 1, 3).End([&] {
      ASSERT_TRUE(pipeline.Remove(1, "test").ok());
      ASSERT_TRUE(pipeline.Add(Parts(second, 2, first_keeps)).ok());
    });
    ASSERT_TRUE(pipeline.Stop("test").ok());
    EXPECT_EQ(Read(second).events, first_keeps ? 0u : 1u);
    EXPECT_EQ(Read(first).events, 1u);
  }
}

// A message that did not fit is taken back with all that it defined: readers
// take ids in their order only.
TEST(BlockBuilderTest, WhatIsRolledBackLeavesNoGapInTheIds) {
  BlockBuilder builder(BlockBuilder::kMinBlockBytes, /*source=*/1);
  CallerInfo caller;
  caller.serial = 7;
  const ProcessFields fields{.pid = true};
  builder.Mark();
  EXPECT_EQ(builder.ProcessId(caller, nullptr, fields), 1u);
  builder.Rollback();
  EXPECT_EQ(builder.ProcessId(caller, nullptr, fields), 1u);
  caller.serial = 8;
  EXPECT_EQ(builder.ProcessId(caller, nullptr, fields), 2u);
  builder.Mark();
  caller.serial = 9;
  EXPECT_EQ(builder.ProcessId(caller, nullptr, fields), 3u);
  builder.Rollback();
  EXPECT_EQ(builder.ProcessId(caller, nullptr, fields), 3u);
}

TEST(PipelineTest, FilterTooLongForABlockIsSwappedAllTheSame) {
  Memory memory;
  Pipeline pipeline(kQuick);
  ASSERT_TRUE(pipeline.Add(Parts(memory, 1)).ok());
  ASSERT_TRUE(pipeline
                  .SetFilter(1, std::make_unique<TestFilter>(true),
                             std::string(100000, 'x'), "")
                  .ok());
  Send(pipeline, 1, 3);
  ASSERT_TRUE(pipeline.Stop("test").ok());
  EXPECT_EQ(Read(memory).events, 0u);
}

TEST(PipelineTest, OfSeveralTracersAllAreAddedOrNone) {
  Memory first;
  Memory second;
  second.failing_writes = 1;  // its header
  Pipeline pipeline(kQuick);
  std::vector<TracerParts> parts;
  parts.push_back(Parts(first, 1));
  parts.push_back(Parts(second, 2));
  EXPECT_EQ(pipeline.Add(std::move(parts)).error(), ENOSPC);
  EXPECT_EQ(pipeline.InterestIn(Op::write_), 0u);
  EXPECT_TRUE(pipeline.Stats().empty());
  parts.clear();
  parts.push_back(Parts(first, 1));
  parts.push_back(Parts(second, 2));
  EXPECT_TRUE(pipeline.Add(std::move(parts)).ok());
  EXPECT_EQ(pipeline.Stats().size(), 2u);
}

// Loses every third block with operations: says so at once, or when it is too
// late for Write to fail.
class LosingFilter final : public OutputFilter {
 public:
  LosingFilter(bool late, std::unique_ptr<OutputFilter> next)
      : late_(late), next_(std::move(next)) {}
  Status Initialize(const TraceIdentity& identity) override {
    lost_ = identity.lost;
    return next_->Initialize(identity);
  }
  Status Write(ByteSpan block, const BlockInfo& info) override {
    if (info.events == 0 || ++count_ % 3 != 0) {
      return next_->Write(block, info);
    }
    if (!late_) return DroppedStatus(LossReason::kThrottled, "test");
    late_ones_.push_back(info);
    return Status::Ok();
  }
  Status Flush() override {
    for (const BlockInfo& info : late_ones_) {
      lost_(info, Status::System(ENOSPC, "test"));
    }
    late_ones_.clear();
    return next_->Flush();
  }
  Status Release() override { return next_->Release(); }
  size_t PreferredBlockSize() const override { return 4096; }

 private:
  const bool late_;
  const std::unique_ptr<OutputFilter> next_;
  BlockLost lost_;
  int count_ = 0;
  std::vector<BlockInfo> late_ones_;
};

TEST(PipelineTest, DataLoss_WhatAPolicyDropsIsCountedAndNoError) {
  constexpr uint64_t kEvents = 5000;
  Memory memory;
  Pipeline pipeline(std::chrono::hours(1));
  TracerParts parts = Parts(memory, 1);
  parts.output =
      std::make_unique<LosingFilter>(/*late=*/false, std::move(parts.output));
  ASSERT_TRUE(pipeline.Add(std::move(parts)).ok());
  for (uint64_t i = 0; i < kEvents; ++i) Send(pipeline, 1, i);
  EXPECT_TRUE(pipeline.Stop("test").ok());
  const Decoded decoded = Read(memory);
  EXPECT_LT(decoded.events, kEvents);
  EXPECT_EQ(decoded.events + decoded.stats.losses.at("throttled"), kEvents);
  EXPECT_EQ(decoded.stats.missing_blocks, 0u);
  EXPECT_EQ(decoded.stats.final_record->events, decoded.events);
}

TEST(PipelineTest, DataLoss_BlocksLostAfterTheyWereTakenAreInTheTotals) {
  constexpr uint64_t kEvents = 5000;
  Memory memory;
  Pipeline pipeline(std::chrono::hours(1));
  TracerParts parts = Parts(memory, 1);
  parts.output =
      std::make_unique<LosingFilter>(/*late=*/true, std::move(parts.output));
  ASSERT_TRUE(pipeline.Add(std::move(parts)).ok());
  for (uint64_t i = 0; i < kEvents; ++i) {
    Send(pipeline, 1, i);
    if (i == kEvents / 2) {
      EXPECT_TRUE(pipeline.FlushAll().ok());
    }
  }
  EXPECT_EQ(pipeline.Stop("test").error(), ENOSPC);
  const Decoded decoded = Read(memory);
  EXPECT_LT(decoded.events, kEvents);
  EXPECT_EQ(decoded.events + decoded.stats.losses.at("output_error"), kEvents);
  ASSERT_TRUE(decoded.stats.final_record);
  EXPECT_EQ(decoded.stats.final_record->events, decoded.events);
  EXPECT_EQ(decoded.stats.final_record->blocks, decoded.stats.blocks);
}

// A block that is lost late may be one that told of losses: they are told
// again.
TEST(PipelineTest, DataLoss_LossesToldInALostBlockAreToldAgain) {
  constexpr uint64_t kEvents = 5000;
  Memory memory;
  Pipeline pipeline(std::chrono::hours(1));
  TracerParts parts = Parts(memory, 1);
  parts.output =
      std::make_unique<LosingFilter>(/*late=*/true, std::move(parts.output));
  ASSERT_TRUE(pipeline.Add(std::move(parts)).ok());
  for (uint64_t i = 0; i < kEvents; ++i) {
    Send(pipeline, 1, i);
    // Losses come out while blocks with them are on their way.
    if (i % 100 == 0) {
      EXPECT_TRUE(pipeline.FlushAll().ok());
    }
  }
  static_cast<void>(pipeline.Stop("test"));
  const Decoded decoded = Read(memory);
  EXPECT_EQ(decoded.events + decoded.stats.losses.at("output_error"), kEvents);
}

// What could not be kept is still counted by kind, whether the output says so
// at once or later.
TEST(PipelineTest, DataLoss_DegradeCountsByKindWhatItCannotKeep) {
  constexpr uint64_t kEvents = 5000;
  for (const bool late : {false, true}) {
    Memory memory;
    Pipeline pipeline(std::chrono::hours(1));
    TracerParts parts = Parts(memory, 1);
    parts.when_full = LossPolicy::kDegrade;
    parts.output =
        std::make_unique<LosingFilter>(late, std::move(parts.output));
    ASSERT_TRUE(pipeline.Add(std::move(parts)).ok());
    for (uint64_t i = 0; i < kEvents; ++i) Send(pipeline, 1, i);
    static_cast<void>(pipeline.Stop("test"));
    const Decoded decoded = Read(memory);
    EXPECT_LT(decoded.events, kEvents);
    EXPECT_EQ(decoded.events + decoded.stats.losses.at("degraded"), kEvents);
    ASSERT_EQ(decoded.stats.lost_messages.size(), 1u);
    EXPECT_EQ(decoded.stats.lost_messages.at(
                  format::OperationMessage(Op::write_, /*before=*/false)),
              decoded.stats.losses.at("degraded"));
  }
}

TEST(PipelineTest, FailRefusesWhileTheOutputIsFull) {
  Memory memory;
  Memory other;
  Pipeline pipeline(std::chrono::hours(1));
  TracerParts parts = Parts(memory, 1);
  parts.when_full = LossPolicy::kFail;
  OutputFull full;
  // The driver's word, taken on its way.
  class Listener final : public OutputFilter {
   public:
    Listener(OutputFull* full, std::unique_ptr<OutputFilter> next)
        : full_(full), next_(std::move(next)) {}
    Status Initialize(const TraceIdentity& identity) override {
      *full_ = identity.full;
      return next_->Initialize(identity);
    }
    Status Write(ByteSpan block, const BlockInfo& info) override {
      return next_->Write(block, info);
    }
    Status Flush() override { return next_->Flush(); }
    Status Release() override { return next_->Release(); }
    size_t PreferredBlockSize() const override { return 4096; }

   private:
    OutputFull* const full_;
    const std::unique_ptr<OutputFilter> next_;
  };
  parts.output = std::make_unique<Listener>(&full, std::move(parts.output));
  ASSERT_TRUE(pipeline.Add(std::move(parts)).ok());
  ASSERT_TRUE(pipeline.Add(Parts(other, 2)).ok());
  EXPECT_NE(pipeline.InterestIn(Op::write_) & EventSink::kGate, 0u);
  EXPECT_FALSE(pipeline.Refuses(Op::write_));
  full(true);
  EXPECT_TRUE(pipeline.Refuses(Op::write_));
  EXPECT_TRUE(pipeline.Refuses(Op::write_));
  full(false);
  EXPECT_FALSE(pipeline.Refuses(Op::write_));

  // A block that is lost all the same: until another one is taken.
  memory.failing_writes = 1;
  Send(pipeline, 1, 0);
  EXPECT_TRUE(pipeline.FlushAll().ok());  // its LOSS comes through
  EXPECT_FALSE(pipeline.Refuses(Op::write_));
  memory.failing_writes = 2;
  Send(pipeline, 1, 0);
  EXPECT_TRUE(pipeline.FlushAll().ok());
  EXPECT_TRUE(pipeline.Refuses(Op::write_));
  EXPECT_TRUE(pipeline.FlushAll().ok());
  EXPECT_FALSE(pipeline.Refuses(Op::write_));
  static_cast<void>(pipeline.Stop("test"));
  const Decoded decoded = Read(memory);
  EXPECT_EQ(decoded.stats.losses.at("refused"), 3u);
  EXPECT_EQ(decoded.stats.losses.at("output_error"), 2u);
  EXPECT_EQ(Read(other).stats.losses.size(), 0u);
}

TEST(PipelineTest, AHeartbeatIsABlockWhenNothingHappens) {
  Memory memory;
  Memory silent;
  Pipeline pipeline(kQuick);
  TracerParts parts = Parts(memory, 1);
  parts.heartbeat_ns = 20'000'000;
  ASSERT_TRUE(pipeline.Add(std::move(parts)).ok());
  ASSERT_TRUE(pipeline.Add(Parts(silent, 2)).ok());
  ASSERT_TRUE(pipeline.Suspend(1).ok());
  const auto blocks = [&] { return Read(memory).stats.blocks; };
  for (int i = 0; i < 5000 && blocks() < 10; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  ASSERT_TRUE(pipeline.Stop("test").ok());
  const Decoded decoded = Read(memory);
  EXPECT_GE(decoded.stats.blocks, 10u);
  EXPECT_EQ(decoded.events, 0u);
  EXPECT_EQ(Read(silent).stats.blocks, 2u);  // its head and its end
}

TEST(PipelineTest, NoMoreThanTheLimitRunAtATime) {
  std::vector<Memory> memories(Pipeline::kMaxTracers + 1);
  Pipeline pipeline(kQuick);
  for (uint32_t i = 0; i < Pipeline::kMaxTracers; ++i) {
    ASSERT_TRUE(pipeline.Add(Parts(memories[i], i)).ok());
  }
  EXPECT_EQ(pipeline.Add(Parts(memories.back(), 99)).code(),
            StatusCode::kInvalid);
  // A stopped one makes room, and finds none when it is to run again.
  ASSERT_TRUE(pipeline.Suspend(3).ok());
  ASSERT_TRUE(pipeline.Add(Parts(memories.back(), 99)).ok());
  EXPECT_EQ(pipeline.Resume(3).code(), StatusCode::kInvalid);
  ASSERT_TRUE(pipeline.Remove(99, "test").ok());
  ASSERT_TRUE(pipeline.Resume(3).ok());
  ASSERT_TRUE(pipeline.Stop("test").ok());
}

TEST(PipelineTest, StatsCountEveryStage) {
  Memory memory;
  Pipeline pipeline(std::chrono::hours(1));
  TracerParts parts = Parts(memory, 1, /*only_even=*/true);
  parts.name = "even";
  parts.probes.push_back(std::make_unique<StageProbe>("memory"));
  parts.output = Metered(*parts.probes[0], std::move(parts.output));
  ASSERT_TRUE(pipeline.Add(std::move(parts)).ok());
  constexpr uint64_t kEvents = 2 * TracerStats::kSampling;
  for (uint64_t i = 0; i < kEvents; ++i) Send(pipeline, 1, i);
  TracerStats stats = pipeline.Stats().at(0);
  EXPECT_EQ(stats.name, "even");
  EXPECT_EQ(stats.seen, kEvents);
  EXPECT_EQ(stats.matched, kEvents / 2);
  EXPECT_EQ(stats.encoded, kEvents / 2);
  EXPECT_EQ(stats.filter_samples, 2u);
  EXPECT_EQ(stats.encode_samples, 1u);
  ASSERT_TRUE(pipeline.FlushAll().ok());
  stats = pipeline.Stats().at(0);
  EXPECT_EQ(stats.written, kEvents / 2);
  EXPECT_EQ(stats.by_op[Index(Op::write_)], kEvents / 2);
  ASSERT_EQ(stats.stages.size(), 1u);
  EXPECT_EQ(stats.stages[0].name, "memory");
  EXPECT_EQ(stats.stages[0].blocks, stats.blocks);
  EXPECT_EQ(stats.stages[0].refused, 0u);
  EXPECT_GT(stats.stages[0].bytes, kEvents / 2 * 40);
  EXPECT_LT(stats.stages[0].bytes, memory.bytes.size());
}

TEST(PipelineTest, StatsTellWhoWantsAnOperation) {
  Memory memory;
  Pipeline pipeline(kQuick);
  EXPECT_TRUE(pipeline.WhoWants(Op::write_).empty());
  TracerParts parts = Parts(memory, 7);
  parts.name = "all";
  ASSERT_TRUE(pipeline.Add(std::move(parts)).ok());
  const std::vector<Interested> who = pipeline.WhoWants(Op::write_);
  ASSERT_EQ(who.size(), 1u);
  EXPECT_EQ(who[0].tracer, 7u);
  EXPECT_EQ(who[0].name, "all");
  EXPECT_EQ(who[0].filter, "test filter");
}

// One file, 5, in the root, 1.
class OneFile final : public EventResolver {
 public:
  void ResolveCaller(Event&) override {}
  void ResolveAttributes(Event&) override {}
  bool LinkOf(uint64_t node, NodeLink* link) override {
    if (node != 5 && node != 1) return false;
    link->parent = node == 5 ? 1 : 0;
    link->parent_version = 0;
    link->name.Set(node == 5 ? "file" : "");
    return true;
  }
  void ForEachName(uint64_t, void*,
                   void (*)(void*, std::string_view)) override {}
};

// Writes the path of the file.
class PathDriver final : public AssemblyDriver {
 public:
  AssemblyNeeds Needs(Op) const override { return {.after = true}; }
  bool NamesDefined(const Event& e, const BlockBuilder& block) const override {
    return block.HasPath(e.node, e.node_version, e.rename_epoch);
  }
  bool Assemble(Event& e, BlockBuilder& block) const override {
    const uint32_t path =
        block.PathId(*e.resolver, e.node, e.node_version, e.rename_epoch);
    if (block.full()) return false;
    format::MessageWriter& w = block.writer();
    w.Begin(format::OperationMessage(e.op, e.before));
    w.Put<uint32_t>(format::ArgId::kPathId, path);
    return w.End();
  }
};

// Messages that were made.
uint64_t Encoded(const Pipeline& pipeline) {
  uint64_t sum = 0;
  for (const TracerStats& stats : pipeline.Stats()) sum += stats.encoded;
  return sum;
}

// True if the event had to be recorded before the reply.
bool RecordOnFile(Pipeline& pipeline, OneFile& files, uint32_t version = 0,
                  uint64_t epoch = 0, uint64_t offset = 0, uint64_t node = 5) {
  Write write(pipeline, 1, offset);
  Event& e = write.event();
  e.resolver = &files;
  e.node = node;
  e.node_version = version;
  e.rename_epoch = epoch;
  const uint64_t before = Encoded(pipeline);
  uint64_t at_reply = 0;
  write.End([&] { at_reply = Encoded(pipeline); });
  return at_reply != before;
}

TEST(PipelineTest, WhatHasNoNameInTheBlockIsRecordedBeforeTheReply) {
  Memory memory;
  Memory other;
  OneFile files;
  Pipeline pipeline(std::chrono::hours(1));
  TracerParts parts = Parts(memory, 1);
  parts.assembly.clear();
  parts.assembly.push_back(std::make_unique<PathDriver>());
  ASSERT_TRUE(pipeline.Add(std::move(parts)).ok());
  EXPECT_TRUE(RecordOnFile(pipeline, files));
  EXPECT_FALSE(RecordOnFile(pipeline, files));
  EXPECT_TRUE(RecordOnFile(pipeline, files, /*version=*/1));
  EXPECT_FALSE(RecordOnFile(pipeline, files, /*version=*/1));
  // Some directory was renamed.
  EXPECT_TRUE(RecordOnFile(pipeline, files, /*version=*/1, /*epoch=*/1));
  EXPECT_FALSE(RecordOnFile(pipeline, files, /*version=*/1, /*epoch=*/1));
  // A new block knows no names.
  ASSERT_TRUE(pipeline.FlushAll().ok());
  EXPECT_TRUE(RecordOnFile(pipeline, files, /*version=*/1, /*epoch=*/1));
  EXPECT_FALSE(RecordOnFile(pipeline, files, /*version=*/1, /*epoch=*/1));
  // What has no name to define is never urgent where nobody writes names.
  ASSERT_TRUE(pipeline.Add(Parts(other, 2)).ok());
  RecordOnFile(pipeline, files);
  EXPECT_FALSE(RecordOnFile(pipeline, files, 0, 0, 0, /*node=*/0));
}

TEST(PipelineTest, PathFiltersDecideBeforeTheReply) {
  Memory memory;
  OneFile files;
  Pipeline pipeline(std::chrono::hours(1));
  TracerParts parts = Parts(memory, 1);
  parts.filter = std::make_unique<PathFilter>(/*only_even=*/true);
  parts.assembly.clear();
  parts.assembly.push_back(std::make_unique<PathDriver>());
  ASSERT_TRUE(pipeline.Add(std::move(parts)).ok());
  EXPECT_NE(pipeline.InterestIn(Op::write_) & EventSink::kBeforeReply, 0u);
  // Dropped: there is nothing to record in time.
  EXPECT_FALSE(RecordOnFile(pipeline, files, 0, 0, /*offset=*/1));
  EXPECT_TRUE(RecordOnFile(pipeline, files, 0, 0, /*offset=*/2));
  ASSERT_TRUE(pipeline.Stop("test").ok());
  EXPECT_EQ(Read(memory).events, 1u);
}

// Forgets the file as soon as the caller may have removed it.
class GoneAfterReply final : public EventResolver {
 public:
  void ResolveCaller(Event&) override {}
  void ResolveAttributes(Event&) override {}
  bool LinkOf(uint64_t node, NodeLink* link) override {
    return !gone && file_.LinkOf(node, link);
  }
  void ForEachName(uint64_t, void*,
                   void (*)(void*, std::string_view)) override {}
  bool gone = false;
  int replies = 0;

 private:
  OneFile file_;
};

TEST(PipelineTest, Race_NamesStayInTheBlockFromTheReplyToTheRecord) {
  Memory memory;
  GoneAfterReply files;
  Pipeline pipeline(std::chrono::hours(1));
  TracerParts parts = Parts(memory, 1);
  parts.assembly.clear();
  parts.assembly.push_back(std::make_unique<PathDriver>());
  ASSERT_TRUE(pipeline.Add(std::move(parts)).ok());
  for (const uint64_t recorded : {1, 1}) {
    Write write(pipeline);
    write.event().resolver = &files;
    write.event().node = 5;
    // The second one is to be recorded when its file is gone.
    write.End([&] {
      ASSERT_EQ(Encoded(pipeline), recorded);
      if (files.replies++ == 0) return;
      files.gone = true;
      std::thread([&] { ASSERT_TRUE(pipeline.FlushAll().ok()); }).join();
    });
  }
  ASSERT_TRUE(pipeline.Stop("test").ok());
  EXPECT_EQ(Read(memory).without_path, 0u);
  EXPECT_EQ(Read(memory).events, 2u);
}

TEST(PipelineTest, NoBlockSaysThatARunningOperationIsOver) {
  Memory memory;
  Pipeline pipeline(std::chrono::hours(1));
  ASSERT_TRUE(pipeline.Add(Parts(memory, 1)).ok());
  std::optional<Write> waiting(std::in_place, pipeline);
  const uint64_t begin = waiting->event().Get(Field::kTime);
  // Others end meanwhile, and it takes longer than a clock's jitter.
  std::thread([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    Send(pipeline, 1, 0);
  }).join();
  ASSERT_TRUE(pipeline.FlushAll().ok());
  EXPECT_LE(Read(memory).watermark, begin);
  waiting->Park();  // goes on without its thread
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  Send(pipeline, 1, 2);
  ASSERT_TRUE(pipeline.FlushAll().ok());
  EXPECT_LE(Read(memory).watermark, begin);
  std::thread([&] {
    waiting->End();
    waiting.reset();
  }).join();
  ASSERT_TRUE(pipeline.FlushAll().ok());
  EXPECT_EQ(Read(memory).events, 3u);
  Send(pipeline, 1, 4);
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  Send(pipeline, 1, 6);
  ASSERT_TRUE(pipeline.Stop("test").ok());
  EXPECT_GT(Read(memory).watermark, begin);
}

TEST(PipelineTest, RemovingAnUnknownTracerSaysSo) {
  Pipeline pipeline(kQuick);
  EXPECT_EQ(pipeline.Remove(7, "x").code(), StatusCode::kInvalid);
  EXPECT_EQ(pipeline.Suspend(7).code(), StatusCode::kInvalid);
  EXPECT_EQ(pipeline.Resume(7).code(), StatusCode::kInvalid);
  EXPECT_EQ(
      pipeline.SetFilter(7, std::make_unique<TestFilter>(true), "", "").code(),
      StatusCode::kInvalid);
}

}  // namespace
}  // namespace tracefs
