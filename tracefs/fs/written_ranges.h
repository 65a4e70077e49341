// WrittenRanges: which bytes of a file were written since somebody took them.
// In a fixed place, as a write notes itself here while its caller waits; where
// a file is written in more pieces than fit, one range over all of them is left
// and says that it is wider than what was written.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <utility>

namespace tracefs {

struct WrittenRange {
  uint64_t begin = 0;
  uint64_t end = 0;  // not included
  friend bool operator==(const WrittenRange&, const WrittenRange&) = default;
};

// Used by one thread.
class WrittenRanges {
 public:
  static constexpr size_t kMost = 16;

  void Add(uint64_t begin, uint64_t end);
  void Add(const WrittenRanges& others);
  // In order, apart from each other.
  std::span<const WrittenRange> ranges() const {
    return {ranges_.data(), count_};
  }
  bool empty() const { return count_ == 0; }
  // Not all that lies in them was written.
  bool widened() const { return widened_; }

 private:
  // One range over all, from then on.
  void Widen();

  std::array<WrittenRange, kMost> ranges_;
  size_t count_ = 0;
  bool widened_ = false;
};

// Those of an inode. Threads: any.
class WriteNotes {
 public:
  void Add(uint64_t begin, uint64_t end) {
    const std::lock_guard lock(mu_);
    ranges_.Add(begin, end);
  }
  // None are left.
  WrittenRanges Take() {
    const std::lock_guard lock(mu_);
    return std::exchange(ranges_, {});
  }
  // Gives back what was taken and not used.
  void Return(const WrittenRanges& taken) {
    const std::lock_guard lock(mu_);
    ranges_.Add(taken);
  }

 private:
  std::mutex mu_;
  WrittenRanges ranges_;  // guarded by mu_
};

}  // namespace tracefs
