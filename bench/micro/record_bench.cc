// The hot path of tracing, per operation and core, without kernel or file
// system: what a handler adds to an operation that some tracer records.
//
// The operations are those of record_world.h.
// Baseline: the same events with a filter that keeps none. Unit: ns per event.
// Targets: FULL (STR_ALL) at most 500 ns; the encoder alone at least 3 M
// messages/s, which is 333 ns.
#include <benchmark/benchmark.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <map>
#include <string>

#include "bench/micro/record_world.h"
#include "drivers/assembly/aggregate.h"
#include "drivers/assembly/stream.h"
#include "tracefs/pipeline/pipeline.h"

namespace tracefs {
namespace {

void Run(benchmark::State& state, bool keep,
         std::shared_ptr<const AssemblyDriver> driver) {
  World world;
  Pipeline pipeline;
  if (!AddRecorder(pipeline, keep, std::move(driver)).ok()) {
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
