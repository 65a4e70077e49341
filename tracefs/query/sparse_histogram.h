// SparseHistogram: how often values came, in the buckets of format/histogram.h,
// only those that have any: none differs from its bucket by more than 0.8 %.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tracefs/format/histogram.h"

namespace tracefs::query {

class SparseHistogram {
 public:
  void Add(uint64_t value, uint64_t count = 1) {
    AddBucket(format::HistogramBucket(value), count);
  }
  void AddBucket(uint16_t bucket, uint64_t count) {
    const auto at = std::lower_bound(
        cells_.begin(), cells_.end(), bucket,
        [](const Cell& cell, uint16_t b) { return cell.bucket < b; });
    if (at != cells_.end() && at->bucket == bucket) {
      at->count = at->count + count;
    } else {
      cells_.insert(at, Cell(bucket, count));
    }
  }
  void Add(const SparseHistogram& other) {
    for (const Cell& cell : other.cells_) {
      AddBucket(static_cast<uint16_t>(cell.bucket), cell.count);
    }
  }

  // Calls `use` with each bucket that has any and its count, in their order.
  template <typename Use>
  void ForEach(Use use) const {
    for (const Cell& cell : cells_) {
      use(static_cast<uint16_t>(cell.bucket), uint64_t{cell.count});
    }
  }

  uint64_t Count() const {
    uint64_t sum = 0;
    for (const Cell& cell : cells_) sum += cell.count;
    return sum;
  }
  // The value at or below which `share` of all lie: the middle of its bucket,
  // but no less than `min`, if that is known, and no more than `max`; 0 if
  // there are none.
  uint64_t Quantile(double share, uint64_t max, uint64_t min = 0) const {
    const uint64_t all = Count();
    if (all == 0) return 0;
    const auto rank = std::clamp<uint64_t>(
        static_cast<uint64_t>(share * static_cast<double>(all) + 0.999999), 1,
        all);
    uint64_t seen = 0;
    for (const Cell& cell : cells_) {
      seen += cell.count;
      if (seen >= rank) {
        const uint64_t middle =
            format::HistogramMiddle(static_cast<uint16_t>(cell.bucket));
        return std::min(std::max(middle, min), max);
      }
    }
    return max;
  }
  // With what the allocator adds.
  size_t bytes() const {
    return cells_.empty() ? 0 : cells_.capacity() * sizeof(Cell) + 16;
  }

 private:
  struct Cell {
    uint64_t bucket : 16;
    uint64_t count : 48;
    Cell(uint16_t b, uint64_t c) : bucket(b), count(c) {}
  };
  std::vector<Cell> cells_;
};

}  // namespace tracefs::query
