// What a caller costs: a hit in the thread's cache, one in the shared cache, a
// reading of /proc, and, as the baseline, the two clock reads of an event.
#include <benchmark/benchmark.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>

#include "tracefs/base/clock.h"
#include "tracefs/process/process_table.h"

namespace tracefs {
namespace {

uint32_t Self() { return static_cast<uint32_t>(::getppid()); }

std::unique_ptr<ProcessTable> MakeTable(benchmark::State& state) {
  auto table = ProcessTable::Create();
  if (table.ok()) return *std::move(table);
  state.SkipWithError(table.status().message().c_str());
  return nullptr;
}

void BM_Baseline_TwoClockReads(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(MonotonicNs());
    benchmark::DoNotOptimize(MonotonicNs());
  }
}
BENCHMARK(BM_Baseline_TwoClockReads);

void BM_Resolve_Hit(benchmark::State& state) {
  const auto table = MakeTable(state);
  if (table == nullptr) return;
  const uint32_t tid = Self();
  for (auto _ : state)
    benchmark::DoNotOptimize(table->Resolve(tid, 1, ProcessTable::kOther));
}
BENCHMARK(BM_Resolve_Hit);

// All threads of one table at once.
void BM_Resolve_HitByManyThreads(benchmark::State& state) {
  static std::unique_ptr<ProcessTable> table;
  if (state.thread_index() == 0) table = MakeTable(state);
  const uint32_t tid = Self();
  for (auto _ : state)
    benchmark::DoNotOptimize(table->Resolve(tid, 1, ProcessTable::kOther));
  if (state.thread_index() == 0) table.reset();
}
BENCHMARK(BM_Resolve_HitByManyThreads)->ThreadRange(1, 8)->UseRealTime();

// Two tasks that share a place in the thread's cache push each other out of it;
// both stay in the shared one.
void BM_Resolve_SharedHit(benchmark::State& state) {
  const auto table = MakeTable(state);
  if (table == nullptr) return;
  const uint32_t one = Self();
  pid_t other;
  for (;;) {
    other = ::fork();
    if (other == 0) {
      ::pause();
      ::_exit(0);
    }
    const uint32_t distance = static_cast<uint32_t>(other) - one;
    if (distance % 256 == 0 && distance % 2048 != 0) break;
    ::kill(other, SIGKILL);
    ::waitpid(other, nullptr, 0);
  }
  const auto two = static_cast<uint32_t>(other);
  for (auto _ : state) {
    benchmark::DoNotOptimize(table->Resolve(one, 1, ProcessTable::kOther));
    benchmark::DoNotOptimize(table->Resolve(two, 1, ProcessTable::kOther));
  }
  state.SetItemsProcessed(2 * state.iterations());
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
}
BENCHMARK(BM_Resolve_SharedHit);

void BM_Resolve_ReadProc(benchmark::State& state) {
  const auto table = MakeTable(state);
  if (table == nullptr) return;
  const uint32_t tid = Self();
  for (auto _ : state) {
    table->Invalidate(tid);
    benchmark::DoNotOptimize(table->Resolve(tid, 1, ProcessTable::kOther));
  }
}
BENCHMARK(BM_Resolve_ReadProc);

}  // namespace
}  // namespace tracefs
