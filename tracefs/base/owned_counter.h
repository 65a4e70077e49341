// OwnedCounter: a number that one thread at a time changes and any thread
// reads. A change is a plain load and store, no atomic read-modify-write.
#pragma once

#include <atomic>
#include <cstdint>

namespace tracefs {

class OwnedCounter {
 public:
  // The owner: whoever holds the lock that guards the counter's changes.
  // Returns the new value.
  uint64_t Add(uint64_t n) {
    const uint64_t sum = value_.load(std::memory_order_relaxed) + n;
    value_.store(sum, std::memory_order_relaxed);
    return sum;
  }
  // The owner. Returns the value so far.
  uint64_t TakeAll() {
    const uint64_t all = Get();
    value_.store(0, std::memory_order_relaxed);
    return all;
  }
  // Threads: any.
  uint64_t Get() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

}  // namespace tracefs
