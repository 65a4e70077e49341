// TaskVersions: counts that change whenever a task does, so that who keeps what
// it read of a task can tell that this is out of date. May lie in memory that
// processes share.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tracefs {

// Threads: any. Tasks share counts: one that did not change may seem to have.
class TaskVersions {
 public:
  // Whoever goes on after this is seen to have changed.
  void Changed(uint32_t tid) {
    counts_[tid % kCounts].fetch_add(1, std::memory_order_release);
  }
  void AllChanged() {
    for (std::atomic<uint64_t>& count : counts_) {
      count.fetch_add(1, std::memory_order_release);
    }
  }

  // Changes whenever the task or the process it belongs to does. Both only
  // count up, so the sum is as good as the pair.
  uint64_t Of(uint32_t tid, uint32_t pid) const {
    return counts_[tid % kCounts].load(std::memory_order_acquire) +
           counts_[pid % kCounts].load(std::memory_order_acquire);
  }

 private:
  static constexpr size_t kCounts = 4096;
  std::array<std::atomic<uint64_t>, kCounts> counts_{};
};

}  // namespace tracefs
