// What it costs to act as the caller, to lock, and to ask where files lie,
// without a mount.
#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <string>

#include "tracefs/base/unique_fd.h"
#include "tracefs/fs/ask_extents.h"
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

// A file of 1 MiB that is on its device, in the working directory.
UniqueFd FileOnDevice() {
  UniqueFd fd(::open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  const std::string bytes(1 << 20, 'x');
  const bool made = fd &&
                    ::write(fd.get(), bytes.data(), bytes.size()) ==
                        static_cast<ssize_t>(bytes.size()) &&
                    ::fsync(fd.get()) == 0;
  if (!made) fd.Reset();
  return fd;
}

// What STR_EXTENTS adds to a write of a page and its fsync, but for the words
// in the message: the page is noted, taken, asked for and told. Baseline:
// BM_Fiemap. Unit: ns per fsync.
void BM_ExtentsOfAPage(benchmark::State& state) {
  const UniqueFd fd = FileOnDevice();
  WriteNotes notes;
  std::string list;
  for (auto _ : state) {
    notes.Add(4096, 8192);
    const WrittenRanges taken = notes.Take();
    uint64_t left_out = 0;
    list.clear();
    if (AskForExtents(fd.get(), taken, &list, &left_out) != 0) {
      state.SkipWithError("FIEMAP is not known here");
      break;
    }
    benchmark::DoNotOptimize(list.data());
  }
}
BENCHMARK(BM_ExtentsOfAPage);

// The ioctl alone.
void BM_Fiemap(benchmark::State& state) {
  const UniqueFd fd = FileOnDevice();
  for (auto _ : state) {
    union {
      fiemap head;
      char room[sizeof(fiemap) + 64 * sizeof(fiemap_extent)];
    } map;
    map.head = {};
    map.head.fm_start = 4096;
    map.head.fm_length = 4096;
    map.head.fm_extent_count = 64;
    benchmark::DoNotOptimize(::ioctl(fd.get(), FS_IOC_FIEMAP, &map));
  }
}
BENCHMARK(BM_Fiemap);

}  // namespace
}  // namespace tracefs
