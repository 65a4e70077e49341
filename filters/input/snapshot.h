// Snapshot<T>: a value that many threads read while one replaces it. Readers
// take no lock and never wait; what they read stays valid while they read.
//
// A reader counts itself in one of several counters, each on its own cache
// line, and then loads the pointer. A replaced value is freed once each counter
// has been seen at zero after the replacement: whoever could still read it had
// counted itself before. That is looked at when the next value is published, so
// at most the values published during the longest read are kept.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace tracefs {

template <typename T>
class Snapshot {
 private:
  struct alignas(64) Counter {
    std::atomic<uint32_t> readers{0};
  };

 public:
  class Reader {
   public:
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    ~Reader() { counter_.readers.fetch_sub(1, std::memory_order_release); }
    const T* operator->() const { return value_; }
    const T& operator*() const { return *value_; }

   private:
    friend class Snapshot;
    Reader(Counter& counter, const std::atomic<const T*>& current)
        : counter_(counter) {
      // Both seq_cst: if the load sees the old value, then whoever replaced it
      // sees the count.
      counter_.readers.fetch_add(1, std::memory_order_seq_cst);
      value_ = current.load(std::memory_order_seq_cst);
    }
    Counter& counter_;
    const T* value_;
  };

  explicit Snapshot(std::unique_ptr<const T> first)
      : current_(first.release()) {}
  // No reader may be left.
  ~Snapshot() { delete current_.load(std::memory_order_relaxed); }
  Snapshot(const Snapshot&) = delete;
  Snapshot& operator=(const Snapshot&) = delete;

  Reader Read() const { return Reader(counters_[CounterOfThread()], current_); }

  // One thread at a time.
  void Publish(std::unique_ptr<const T> next) {
    const T* old = current_.exchange(next.release(), std::memory_order_seq_cst);
    retired_.push_back({std::unique_ptr<const T>(old), kAllCounters});
    uint32_t idle = 0;
    for (size_t i = 0; i < kCounters; ++i) {
      if (counters_[i].readers.load(std::memory_order_seq_cst) == 0) {
        idle |= uint32_t{1} << i;
      }
    }
    std::erase_if(retired_, [idle](Retired& retired) {
      retired.not_yet_idle &= ~idle;
      return retired.not_yet_idle == 0;
    });
  }

  // Values that wait to be freed; for tests.
  size_t retired() const { return retired_.size(); }

 private:
  static constexpr size_t kCounters = 16;
  static constexpr uint32_t kAllCounters = (uint32_t{1} << kCounters) - 1;

  struct Retired {
    std::unique_ptr<const T> value;
    uint32_t not_yet_idle;  // counters not seen at zero since
  };

  static size_t CounterOfThread() {
    static std::atomic<size_t> next{0};
    thread_local const size_t mine =
        next.fetch_add(1, std::memory_order_relaxed) % kCounters;
    return mine;
  }

  mutable std::array<Counter, kCounters> counters_;
  std::atomic<const T*> current_;
  std::vector<Retired> retired_;
};

}  // namespace tracefs
