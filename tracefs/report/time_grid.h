// TimeGrid: bins of time of one width, a power of two of nanoseconds, which
// doubles whenever what has come would not fit into a fixed number of bins.
// Bins begin at multiples of their width since the epoch: which ones there are
// at the end depends on the earliest and the latest time alone, not on the
// order in which times came.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace tracefs::report {

// Bins as they are at a moment.
struct Bins {
  int shift = 0;       // a bin is 1 << shift ns
  uint64_t first = 0;  // the number, since the epoch, of the first one
  size_t size = 0;

  uint64_t width_ns() const { return uint64_t{1} << shift; }
  uint64_t begin_ns() const { return first << shift; }
  // Of a time that lies in one of them.
  size_t Of(uint64_t ns) const {
    return static_cast<size_t>((ns >> shift) - first);
  }
};

// Used by one thread.
class TimeGrid {
 public:
  static constexpr size_t kMostBins = 1024;
  static constexpr int kFirstShift = 10;  // bins of about a microsecond
  static constexpr int kCoarser = 2;      // a coarse bin has four

  // Makes room for a time.
  void Reach(uint64_t ns) {
    if (!empty_ && ns >= first_ns_ && ns <= last_ns_) return;
    first_ns_ = empty_ ? ns : std::min(first_ns_, ns);
    last_ns_ = empty_ ? ns : std::max(last_ns_, ns);
    empty_ = false;
    while ((last_ns_ >> shift_) - (first_ns_ >> shift_) >= kMostBins) ++shift_;
  }

  bool empty() const { return empty_; }
  uint64_t first_ns() const { return first_ns_; }
  uint64_t last_ns() const { return last_ns_; }
  Bins fine() const { return At(shift_); }
  // There are at most a quarter as many, and one.
  Bins coarse() const { return At(shift_ + kCoarser); }

 private:
  Bins At(int shift) const {
    const uint64_t first = first_ns_ >> shift;
    const size_t size =
        empty_ ? 0 : static_cast<size_t>((last_ns_ >> shift) - first + 1);
    return {.shift = shift, .first = first, .size = size};
  }

  int shift_ = kFirstShift;
  bool empty_ = true;
  uint64_t first_ns_ = 0;
  uint64_t last_ns_ = 0;
};

// A number for each bin, joined and moved as bins are.
class BinRow {
 public:
  // The number of the bin of `ns`.
  uint64_t& At(const Bins& bins, uint64_t ns) {
    Fit(bins);
    const size_t bin = bins.Of(ns);
    if (bin >= numbers_.size()) numbers_.resize(bin + 1);
    return numbers_[bin];
  }
  // All of them, in the bins as they are now.
  const std::vector<uint64_t>& Numbers(const Bins& bins) {
    Fit(bins);
    numbers_.resize(bins.size);
    return numbers_;
  }

 private:
  void Fit(const Bins& bins) {
    if (shift_ == bins.shift && first_ == bins.first) return;
    if (!numbers_.empty()) Move(bins);
    shift_ = bins.shift;
    first_ = bins.first;
  }
  void Move(const Bins& bins) {
    std::vector<uint64_t> now;
    for (size_t i = 0; i < numbers_.size(); ++i) {
      if (numbers_[i] == 0) continue;
      const auto bin = static_cast<size_t>(
          ((first_ + i) >> (bins.shift - shift_)) - bins.first);
      if (bin >= now.size()) now.resize(bin + 1);
      now[bin] += numbers_[i];
    }
    numbers_ = std::move(now);
  }

  std::vector<uint64_t> numbers_;
  int shift_ = 0;
  uint64_t first_ = 0;
};

}  // namespace tracefs::report
