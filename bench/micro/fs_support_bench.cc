// What it costs to act as the caller, and to lock, without a mount.
#include <benchmark/benchmark.h>

#include <cstdio>

#include "tracefs/fs/credentials.h"
#include "tracefs/fs/lock_table.h"

namespace tracefs {
namespace {

void BM_AsCaller_SameAsBefore(benchmark::State& state) {
  for (auto _ : state) {
    AsCaller as(1000, 1000, 022);
    benchmark::DoNotOptimize(as.error());
  }
  AsDaemon back;
}
BENCHMARK(BM_AsCaller_SameAsBefore);

void BM_AsCaller_Alternating(benchmark::State& state) {
  uint32_t uid = 1000;
  for (auto _ : state) {
    AsCaller as(uid ^= 1, 1000, 022);
    benchmark::DoNotOptimize(as.error());
  }
  AsDaemon back;
}
BENCHMARK(BM_AsCaller_Alternating);

// As a thread whose requests need it and must not have it in turn.
void BM_AllowFsetid_Alternating(benchmark::State& state) {
  bool allow = false;
  for (auto _ : state) {
    ThreadCredentials::Current().AllowFsetid(allow);
    allow = !allow;
  }
  AsDaemon back;
}
BENCHMARK(BM_AllowFsetid_Alternating);

// Beside `range(0)` locks that others hold on the file.
void BM_LockTable_SetAndUnlock(benchmark::State& state) {
  static LockTable table;
  const auto file = static_cast<uint64_t>(state.thread_index() + 1);
  for (int64_t i = 0; i < state.range(0); ++i) {
    const auto byte = static_cast<uint64_t>(1000 + 2 * i);
    (void)table.Set(
        file,
        {.type = LockType::kWrite, .start = byte, .end = byte, .owner = byte});
  }
  Lock lock = {.type = LockType::kWrite, .start = 0, .end = 9, .owner = 1};
  for (auto _ : state) {
    lock.type = LockType::kWrite;
    benchmark::DoNotOptimize(table.Set(file, lock));
    lock.type = LockType::kUnlock;
    benchmark::DoNotOptimize(table.Set(file, lock));
  }
  table.Clear();  // no thread is in the loop any more
}
BENCHMARK(BM_LockTable_SetAndUnlock)->Arg(0)->Arg(100)->Arg(10000);
BENCHMARK(BM_LockTable_SetAndUnlock)->Arg(0)->Threads(8)->UseRealTime();

void BM_LockTable_ReleaseOwnerWhileNobodyLocks(benchmark::State& state) {
  LockTable table;
  for (auto _ : state) table.ReleaseOwner(1, 1);
}
BENCHMARK(BM_LockTable_ReleaseOwnerWhileNobodyLocks);

}  // namespace
}  // namespace tracefs
