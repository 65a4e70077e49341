// The hot path of tracing, per operation and core, without kernel or file
// system: what a handler adds to an operation that some tracer records.
//
// Mix: the operations of Postmark (lookup, create, write, read, flush, release,
// open, unlink by turns) on 500 files in 50 directories by one process.
// Baseline: the same events with a filter that keeps none. Unit: ns per event.
// Targets: FULL (STR_ALL) at most 500 ns; the encoder alone at least 3 M
// messages/s, which is 333 ns.
#include <benchmark/benchmark.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <map>
#include <string>

#include "drivers/assembly/aggregate.h"
#include "drivers/assembly/stream.h"
#include "tracefs/base/clock.h"
#include "tracefs/pipeline/framing.h"
#include "tracefs/pipeline/pipeline.h"
#include "tracefs/process/process_table.h"

namespace tracefs {
namespace {

// Takes all and keeps nothing: the cost of output is measured elsewhere.
class NullDriver final : public OutputDriver {
 public:
  Status Initialize(const TraceIdentity&) override { return Status::Ok(); }
  Status Write(ByteSpan, ByteSpan, const BlockInfo&) override {
    return Status::Ok();
  }
  Status Flush() override { return Status::Ok(); }
  Status Release() override { return Status::Ok(); }
  size_t PreferredBlockSize() const override { return 0; }
};

class ConstantFilter final : public InputFilter {
 public:
  explicit ConstantFilter(bool keep) : keep_(keep) {}
  FilterNeeds Needs(Op) const override {
    FilterNeeds needs;
    if (keep_) needs.constant = Verdict::kKeep;
    return needs;
  }
  Verdict DecideEarly(Event&) const override {
    return keep_ ? Verdict::kKeep : Verdict::kDrop;
  }
  bool Keep(Event&) const override { return keep_; }

 private:
  const bool keep_;
};

// 500 files in 50 directories below a root; callers from the process table.
class World final : public EventResolver {
 public:
  static constexpr uint64_t kDirs = 50;
  static constexpr uint64_t kFiles = 500;

  World() : processes_(std::move(*ProcessTable::Create())) {}

  void ResolveCaller(Event& event) override {
    const CallerInfo* caller =
        processes_->Resolve(static_cast<uint32_t>(event.Get(Field::kTid)),
                            event.Get(Field::kTime), ProcessTable::kOther);
    if (caller == nullptr) return;
    event.caller = caller;
    event.Set(Field::kPid, caller->pid);
    event.Set(Field::kPpid, caller->ppid);
    event.Set(Field::kSid, caller->sid);
    event.Set(Field::kPgid, caller->pgid);
  }
  void ResolveAttributes(Event&) override {}
  bool LinkOf(uint64_t node, NodeLink* link) override {
    link->parent_version = 0;
    link->parent = node == 1 ? 0 : node < 2 + kDirs ? 1 : 2 + node % kDirs;
    link->name.Set(node == 1 ? "" : "file_name_12");
    return true;
  }
  void ForEachName(uint64_t, void*,
                   void (*)(void*, std::string_view)) override {}

 private:
  std::unique_ptr<ProcessTable> processes_;
};

constexpr Op kMix[] = {Op::lookup_, Op::create_,  Op::write_, Op::read_,
                       Op::flush_,  Op::release_, Op::open_,  Op::unlink_};

// What OpScope does for an operation that is traced.
void HandleOne(EventSink& sink, World& world, uint64_t i, uint32_t tid) {
  const Op op = kMix[i % std::size(kMix)];
  const uint32_t interest = sink.InterestIn(op);
  if (interest == 0) return;
  Event e;
  e.op = op;
  e.resolver = &world;
  e.Set(Field::kTime, MonotonicNs());
  e.Set(Field::kTid, tid);
  e.Set(Field::kUid, 1000);
  e.Set(Field::kGid, 1000);
  const uint64_t file = 2 + World::kDirs + i / 8 % World::kFiles;
  if (HasName(op)) {
    e.parent = 2 + file % World::kDirs;
    e.name = "file_name_12";
    e.Set(Field::kParentInode, e.parent);
  } else {
    e.Set(Field::kFh, file);
  }
  e.node = file;
  e.Set(Field::kInode, file);
  e.Set(Field::kType, 8);
  e.Set(Field::kFlags, 2);
  if (op == Op::read_ || op == Op::write_) {
    e.Set(Field::kOffset, i);
    e.Set(Field::kLength, 512);
  }
  e.SetResult(0, 0);
  e.Set(Field::kLatency, MonotonicNs() - e.Get(Field::kTime));
  if ((interest & EventSink::kCaller) != 0) e.NeedCaller();
  if ((interest & EventSink::kBeforeReply) != 0) sink.BeforeReply(e);
  sink.AfterReply(e);
}

void Run(benchmark::State& state, bool keep,
         std::shared_ptr<const AssemblyDriver> driver) {
  World world;
  Pipeline pipeline(
      {.flush_interval = std::chrono::milliseconds(250), .match_name = {}});
  TracerParts parts;
  parts.id = 1;
  parts.filter = std::make_unique<ConstantFilter>(keep);
  parts.assembly.push_back(std::move(driver));
  parts.output = MakeFraming(std::make_unique<NullDriver>());
  parts.header.clock = ClockPair::Now();
  if (!pipeline.Add(std::move(parts)).ok()) {
    state.SkipWithError("the tracer did not start");
    return;
  }
  const auto tid = static_cast<uint32_t>(::syscall(SYS_gettid));
  uint64_t i = 0;
  for (auto _ : state) HandleOne(pipeline, world, i++, tid);
  state.SetItemsProcessed(static_cast<int64_t>(i));
}

void BM_RecordNothing(benchmark::State& state) {
  Run(state, false, MakeStream(StreamFlagBits("STR_ALL")));
}
BENCHMARK(BM_RecordNothing);

void BM_RecordPaperFlags(benchmark::State& state) {
  Run(state, true,
      MakeStream(StreamFlagBits("STR_POST_OP") | StreamFlagBits("STR_PID") |
                 StreamFlagBits("STR_UID") | StreamFlagBits("STR_TIMESTAMP")));
}
BENCHMARK(BM_RecordPaperFlags);

void BM_RecordFull(benchmark::State& state) {
  Run(state, true, MakeStream(StreamFlagBits("STR_ALL")));
}
BENCHMARK(BM_RecordFull);

// Counting instead of recording; target: at most 150 ns by op and uid.
void RunAggregate(benchmark::State& state, std::string_view clauses) {
  Result<AggregateSpec> spec = ParseAggregateSpec(clauses, "bench", {});
  if (!spec.ok()) {
    state.SkipWithError(spec.status().message().c_str());
    return;
  }
  Run(state, true, MakeAggregate(*std::move(spec)));
}

void BM_CountAll(benchmark::State& state) {
  RunAggregate(state, "values count");
}
BENCHMARK(BM_CountAll);

void BM_CountByOpAndUid(benchmark::State& state) {
  RunAggregate(state, "by op, uid; values count errors bytes latency");
}
BENCHMARK(BM_CountByOpAndUid);

void BM_CountByProcess(benchmark::State& state) {
  RunAggregate(state, "by op, pid, cname; values count errors bytes latency");
}
BENCHMARK(BM_CountByProcess);

void BM_CountByDirectory(benchmark::State& state) {
  RunAggregate(state,
               "by op, uid, pid, cname, ext, dir(2); values count errors bytes "
               "latency size");
}
BENCHMARK(BM_CountByDirectory);

// Ever new keys: the table is always full.
void BM_CountByInode(benchmark::State& state) {
  Result<AggregateSpec> spec =
      ParseAggregateSpec("by inode; values count latency", "bench", {});
  const std::unique_ptr<AssemblyDriver> driver = MakeAggregate(*spec);
  const std::shared_ptr<EventCounter> counter = driver->counter();
  const std::unique_ptr<EventCounter::Shard> shard = counter->MakeShard();
  Event e;
  e.op = Op::write_;
  e.Set(Field::kLatency, 12345);
  e.SetResult(512, 0);
  uint64_t i = 0;
  for (auto _ : state) {
    e.Set(Field::kInode, i++);
    counter->Count(e, *shard);
  }
  state.SetItemsProcessed(static_cast<int64_t>(i));
}
BENCHMARK(BM_CountByInode);

// The encoder alone: one finished event again and again, the block emptied
// when it is full.
void BM_EncodeFull(benchmark::State& state) {
  World world;
  const auto driver = MakeStream(StreamFlagBits("STR_ALL"));
  BlockBuilder block(256 * 1024);
  auto spare = std::make_unique<Block>(256 * 1024);
  Event e;
  e.op = Op::write_;
  e.resolver = &world;
  for (const Field f : {Field::kTime, Field::kTid, Field::kUid, Field::kGid,
                        Field::kInode, Field::kType, Field::kFh, Field::kOffset,
                        Field::kLength, Field::kFlags, Field::kLatency}) {
    e.Set(f, 12345);
  }
  e.SetResult(512, 0);
  uint64_t i = 0;
  for (auto _ : state) {
    e.node = 2 + World::kDirs + i++ % World::kFiles;
    block.Mark();
    if (!driver->Assemble(e, block)) {
      block.Rollback();
      spare = block.Take(std::move(spare));
      continue;
    }
    block.Commit(e);
  }
  state.SetItemsProcessed(static_cast<int64_t>(i));
}
BENCHMARK(BM_EncodeFull);

}  // namespace
}  // namespace tracefs
