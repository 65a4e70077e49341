// Every order in which threads may take their steps, for a few threads and a
// few operations: the pipeline's own code under the scheduler of
// tests/support/schedules.h. What it has to keep: an owner and a revoker
// exclude each other; nothing that is still to come is older than a watermark;
// each operation is in each trace once, and in no trace that ended before it;
// the counts of a tracer are its own.
//
// The machine's faults are tried, too: the search must find what they break.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/unit/pipeline/modelled_pipeline.h"
#include "tracefs/format/message_cursor.h"

namespace tracefs {
namespace {

using test::Machine;
using test::Schedules;

#define EXPECT_HOLDS(outcome)                                            \
  EXPECT_EQ(outcome.failure, "") << "in schedule " << outcome.schedules; \
  EXPECT_TRUE(outcome.all) << outcome.schedules

// --- BiasedLock

struct Guarded {
  modelled::BiasedLock lock;
  modelled_std::atomic<int> number{0};
  bool held = false;
  bool overlap = false;

  void Work() {
    overlap |= held;
    held = true;
    // As a plain variable.
    number.store(number.load(std::memory_order_relaxed) + 1,
                 std::memory_order_relaxed);
    held = false;
  }
};

Schedules::World LockWorld(int revokers) {
  auto guarded = std::make_shared<Guarded>();
  Schedules::World world;
  world.fibers.emplace_back([guarded] {
    for (int i = 0; i < 2; ++i) {
      modelled::OwnerSection section(guarded->lock);
      guarded->Work();
    }
  });
  for (int i = 0; i < revokers; ++i) {
    world.fibers.emplace_back([guarded] {
      modelled::RevokerSection section(guarded->lock);
      guarded->Work();
    });
  }
  world.check = [guarded, revokers]() -> std::string {
    if (guarded->overlap) return "two were inside";
    const int sum = guarded->number.load();
    return sum == 2 + revokers ? "" : "a change was lost";
  };
  return world;
}

TEST(SchedulesTest, OwnerAndRevokersExcludeEachOther) {
  EXPECT_HOLDS(Schedules::Explore(3, [] { return LockWorld(1); }));
  EXPECT_HOLDS(Schedules::Explore(2, [] { return LockWorld(2); }));
}

TEST(SchedulesTest, TheLockNeedsItsBarrierAndItsReleases) {
  const auto make = [] { return LockWorld(1); };
  EXPECT_NE(Schedules::Explore(3, make, {.membarrier_works = false}).failure,
            "");
  EXPECT_NE(Schedules::Explore(3, make, {.release_orders = false}).failure, "");
}

// --- ThreadSlots

// Two operations of a thread, the second of which nobody records, and somebody
// who asks how old the oldest one is.
struct Begun {
  modelled::ThreadSlots slots;
  struct Operation {
    uint64_t begin_ns;
    size_t gone;  // the moment since which it does not count
  };
  std::vector<Operation> operations;
  struct Answer {
    uint64_t oldest_ns;
    size_t asked;
  };
  std::vector<Answer> answers;
  size_t moment = 0;
};

Schedules::World SlotWorld(bool parks, int count = 2) {
  auto begun = std::make_shared<Begun>();
  Schedules::World world;
  world.fibers.emplace_back([begun, parks, count] {
    modelled::ThreadSlot& slot = begun->slots.OfThread();
    for (int i = 0; i < count; ++i) {
      const bool recorded = i == 0;
      const uint64_t begin = slot.Enter();
      const size_t at = begun->operations.size();
      begun->operations.push_back({begin, SIZE_MAX});
      if (parks) {
        begun->slots.Park(begin);
        slot.Leave();
        begun->operations[at].gone = ++begun->moment;
        begun->slots.Unpark(begin);
        continue;
      }
      if (recorded) {
        modelled::OwnerSection section(slot.lock);
        if (slot.open_since.load(std::memory_order_relaxed) == 0) {
          slot.open_since.store(begin, std::memory_order_relaxed);
        }
      } else {
        begun->operations[at].gone = ++begun->moment;
      }
      slot.Leave();
    }
  });
  world.fibers.emplace_back([begun, count] {
    for (int i = 0; i < count; ++i) {
      const size_t asked = ++begun->moment;
      begun->answers.push_back({begun->slots.OldestBegin(), asked});
    }
  });
  world.check = [begun]() -> std::string {
    for (const Begun::Answer& answer : begun->answers) {
      for (const Begun::Operation& operation : begun->operations) {
        if (operation.begin_ns < answer.oldest_ns &&
            operation.gone > answer.asked) {
          // It may have gone while the answer was made; then either is right.
          if (operation.gone != SIZE_MAX) continue;
          return "an operation is older than the oldest";
        }
      }
    }
    return "";
  };
  return world;
}

TEST(SchedulesTest, NothingIsOlderThanTheOldest) {
  EXPECT_HOLDS(Schedules::Explore(5, [] { return SlotWorld(false, 1); }));
  EXPECT_HOLDS(Schedules::Explore(3, [] { return SlotWorld(false); }));
  EXPECT_HOLDS(Schedules::Explore(3, [] { return SlotWorld(true); }));
}

TEST(SchedulesTest, TheOldestNeedsTheReleaseOfLeave) {
  EXPECT_NE(Schedules::Explore(5, [] { return SlotWorld(false, 1); },
                               {.release_orders = false})
                .failure,
            "");
}

// A slot's next thread sees what the one before left.
Schedules::World HandOverWorld() {
  struct Shared {
    modelled::ThreadSlots slots;
    std::multiset<uint32_t> used;
  };
  auto shared = std::make_shared<Shared>();
  Schedules::World world;
  for (int i = 0; i < 3; ++i) {
    world.fibers.emplace_back([shared] {
      modelled::ThreadSlot& slot = shared->slots.OfThread();
      modelled::OwnerSection section(slot.lock);
      slot.tallies[0].seen.Add(1);
      shared->used.insert(slot.number);
    });
  }
  world.check = [shared]() -> std::string {
    uint64_t seen = 0;
    for (const auto& slot : shared->slots.All()) {
      seen += slot->tallies[0].seen.Get();
      if (slot->owned.load()) return "a slot has an owner that is gone";
    }
    return seen == 3 ? "" : "a count was lost";
  };
  return world;
}

TEST(SchedulesTest, ASlotGoesFromThreadToThread) {
  EXPECT_HOLDS(Schedules::Explore(2, &HandOverWorld));
}

// --- Pipeline

// What the output of a tracer took.
struct Taken {
  struct Block {
    uint64_t watermark_ns;
    std::vector<std::pair<uint64_t, uint64_t>> operations;  // id, begin
  };
  std::vector<Block> blocks;
  bool over = false;
  size_t after_the_end = 0;
};

class TakingOutput final : public modelled::OutputFilter {
 public:
  explicit TakingOutput(std::shared_ptr<Taken> taken)
      : taken_(std::move(taken)) {}
  Status Initialize(const modelled::TraceIdentity&) override {
    return Status::Ok();
  }
  Status Write(ByteSpan bytes, const modelled::BlockInfo& info) override {
    if (taken_->over) ++taken_->after_the_end;
    taken_->over |= info.last;
    if (info.sequence == 0) return Status::Ok();
    Taken::Block& block = taken_->blocks.emplace_back();
    format::MessageCursor in(bytes);
    format::Message message;
    format::BlockHead head;
    bool before = false;
    while (in.Next(&message)) {
      if (message.offset == 0) {
        format::ReadBlockHead(message.arguments, &head);
        block.watermark_ns = head.watermark_ns;
      } else if (format::OperationOf(message.msg_id, &before)) {
        std::pair<uint64_t, uint64_t> numbers;
        format::ArgumentCursor arguments(message.arguments,
                                         format::BuiltInWidths());
        format::Argument argument;
        while (arguments.Next(&argument)) {
          (argument.id == Info(Field::kTime).arg_id ? numbers.second
                                                    : numbers.first) =
              argument.As<uint64_t>();
        }
        block.operations.push_back(numbers);
      }
    }
    return Status::Ok();
  }
  Status Flush() override { return Status::Ok(); }
  Status Release() override { return Status::Ok(); }
  size_t PreferredBlockSize() const override { return 4096; }

 private:
  const std::shared_ptr<Taken> taken_;
};

class KeepAll final : public modelled::InputFilter {
 public:
  explicit KeepAll(bool asks) : asks_(asks) {}
  FilterNeeds Needs(Op) const override {
    FilterNeeds needs;
    if (!asks_) needs.constant = Verdict::kKeep;
    needs.paths = asks_;  // which may be gone after the reply
    return needs;
  }
  Verdict DecideEarly(Event&) const override { return Verdict::kUndecided; }
  bool Keep(Event&) const override { return true; }

 private:
  const bool asks_;
};

class Numbers final : public modelled::AssemblyDriver {
 public:
  modelled::AssemblyNeeds Needs(Op) const override { return {.after = true}; }
  bool Assemble(Event& e, modelled::BlockBuilder& block) const override {
    format::MessageWriter& w = block.writer();
    w.Begin(format::OperationMessage(e.op, e.before));
    w.Put<uint64_t>(Info(Field::kTime).arg_id, e.Get(Field::kTime));
    w.Put<uint64_t>(Info(Field::kOffset).arg_id, e.Get(Field::kOffset));
    return w.End();
  }
};

class PipelineWorld {
 public:
  // Before the fibers begin.
  void Start(uint32_t id, bool early = false) {
    EXPECT_TRUE(Add(id, early).ok());
  }
  Status Add(uint32_t id, bool early = false) {
    asks |= early;
    modelled::TracerParts parts;
    parts.id = id;
    parts.filter = std::make_unique<KeepAll>(early);
    parts.assembly.push_back(std::make_unique<Numbers>());
    traces[id] = std::make_shared<Taken>();
    parts.output = std::make_unique<TakingOutput>(traces[id]);
    Status s = pipeline.Add(std::move(parts));
    began[id] = ++moment;
    return s;
  }
  void Remove(uint32_t id) {
    ended[id] = ++moment;
    modelled::TracerStats stats;
    EXPECT_TRUE(pipeline.Remove(id, "test", &stats).ok());
    gone[id] = ++moment;
    last[id] = stats;
  }
  void Operations(int count) {
    for (int i = 0; i < count; ++i) {
      const uint32_t interest = pipeline.InterestIn(Op::write_);
      const uint64_t id = ++moment;
      begins[id] = id;
      if (interest != 0) {
        modelled::Recording recording(pipeline, Op::write_, interest);
        recording.event.Set(Field::kOffset, id);
        recording.event.SetResult(1, 0);
        recording.End([] { return 0; });
      }
      ends[id] = ++moment;
    }
  }

  std::string Check() {
    for (const auto& [id, trace] : traces) {
      if (last.count(id) == 0) Remove(id);
    }
    std::ostringstream wrong;
    for (const auto& [id, trace] : traces) {
      if (trace->after_the_end != 0) wrong << "a block after the last; ";
      std::multiset<uint64_t> written;
      uint64_t watermark = 0;
      for (const Taken::Block& block : trace->blocks) {
        for (const auto& [number, begin_ns] : block.operations) {
          written.insert(number);
          if (begin_ns < watermark) {
            wrong << "an operation older than a watermark; ";
          }
        }
        watermark = std::max(watermark, block.watermark_ns);
      }
      for (const auto& [number, begun] : begins) {
        const size_t times = written.count(number);
        if (times > 1) wrong << "an operation twice; ";
        // While it began or ended, or is suspended, either is right.
        if (times == 0 && begun > began[id] && ends[number] < ended[id] &&
            !suspends) {
          wrong << "an operation is missing; ";
        }
        if (times != 0 && begun > gone[id]) wrong << "one after the end; ";
      }
      const modelled::TracerStats& stats = last[id];
      const size_t size = written.size();
      // A filter that had to decide before the reply may have been asked about
      // an operation that was not over when its tracer ended.
      const uint64_t most = size + (asks ? 1 : 0);
      if (stats.encoded != size || stats.written != size || stats.seen < size ||
          stats.seen > most || stats.matched != stats.seen) {
        wrong << "tracer " << id << " counts " << stats.seen << " "
              << stats.matched << " " << stats.encoded << " " << stats.written
              << " of " << size << "; ";
      }
    }
    return wrong.str();
  }

  modelled::Pipeline pipeline;
  std::map<uint32_t, std::shared_ptr<Taken>> traces;
  std::map<uint32_t, uint64_t> began, ended, gone;
  std::map<uint32_t, modelled::TracerStats> last;
  std::map<uint64_t, uint64_t> begins, ends;
  uint64_t moment = 0;
  bool suspends = false;
  bool asks = false;
};

using Body = std::function<void(PipelineWorld&)>;

Schedules::Outcome Orders(int surprises, const Body& start,
                          const std::vector<Body>& bodies,
                          Machine machine = {}) {
  return Schedules::Explore(
      surprises,
      [&] {
        auto shared = std::make_shared<PipelineWorld>();
        start(*shared);
        Schedules::World world;
        for (const Body& body : bodies) {
          world.fibers.emplace_back([shared, &body] { body(*shared); });
        }
        world.check = [shared] { return shared->Check(); };
        return world;
      },
      machine);
}

void OneTracer(PipelineWorld& w) { w.Start(1); }
void OneOperation(PipelineWorld& w) { w.Operations(1); }
void TwoOperations(PipelineWorld& w) { w.Operations(2); }

TEST(SchedulesTest, AFlushTakesEachOperationOnce) {
  EXPECT_HOLDS(Orders(1, OneTracer, {TwoOperations, [](PipelineWorld& w) {
                                       EXPECT_TRUE(w.pipeline.FlushAll().ok());
                                       modelled::Worker::last->turn();
                                     }}));
}

// What was recorded while a flush went on is older than what comes a while
// later.
TEST(SchedulesTest, WhatAFlushLeavesHoldsTheWatermarkBack) {
  EXPECT_HOLDS(Orders(2, OneTracer, {TwoOperations, [](PipelineWorld& w) {
                                       EXPECT_TRUE(w.pipeline.FlushAll().ok());
                                       modelled::LetTimePass();
                                       w.Operations(1);
                                       EXPECT_TRUE(w.pipeline.FlushAll().ok());
                                     }}));
}

TEST(SchedulesTest, ATracerThatTakesAnothersPlaceCountsItsOwn) {
  EXPECT_HOLDS(Orders(2, OneTracer, {TwoOperations, [](PipelineWorld& w) {
                                       w.Remove(1);
                                       EXPECT_TRUE(w.Add(2).ok());
                                     }}));
}

TEST(SchedulesTest, AFiltersDecisionIsOfItsTracer) {
  EXPECT_HOLDS(Orders(1, [](PipelineWorld& w) { w.Start(1, true); },
                      {TwoOperations, [](PipelineWorld& w) {
                         w.Remove(1);
                         EXPECT_TRUE(w.Add(2, true).ok());
                       }}));
}

TEST(SchedulesTest, OneOfTwoTracersStops) {
  EXPECT_HOLDS(Orders(1,
                      [](PipelineWorld& w) {
                        w.Start(1);
                        w.Start(2);
                      },
                      {OneOperation, [](PipelineWorld& w) { w.Remove(1); }}));
}

TEST(SchedulesTest, ASuspendedTracerGoesOnWithItsCounts) {
  EXPECT_HOLDS(Orders(2,
                      [](PipelineWorld& w) {
                        w.Start(1);
                        w.suspends = true;
                      },
                      {OneOperation, [](PipelineWorld& w) {
                         EXPECT_TRUE(w.pipeline.Suspend(1).ok());
                         EXPECT_TRUE(w.pipeline.Resume(1).ok());
                       }}));
}

TEST(SchedulesTest, TwoThreadsAndAFlush) {
  EXPECT_HOLDS(
      Orders(1, OneTracer, {OneOperation, OneOperation, [](PipelineWorld& w) {
                              EXPECT_TRUE(w.pipeline.FlushAll().ok());
                            }}));
}

TEST(SchedulesTest, APipelineWithoutBarriersLosesOperations) {
  EXPECT_NE(Orders(2, OneTracer,
                   {OneOperation, [](PipelineWorld& w) { w.Remove(1); }},
                   {.membarrier_works = false})
                .failure,
            "");
}

}  // namespace
}  // namespace tracefs
