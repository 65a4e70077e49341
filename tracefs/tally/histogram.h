// Histograms and their quantiles: the only definition of p50, p99 and the like,
// for whatever prints them.
//
// Values are counted in log-linear buckets (FORMAT.md section 8a): 64 a power
// of two, so that no value differs from the middle of its bucket by more than
// 0.8 %. Values below 128 have a bucket each.
//
// The quantile of a share (0 to 1) is the smallest value that at least this
// share of all values does not exceed: of n values in order, the one at
// ceil(share * n), from 1. Its bucket is exact; the middle of it stands for the
// value, moved up to the smallest or down to the largest of all values where
// these are known. 0 if there are no values.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tracefs::tally {

inline constexpr int kHistogramBits = 6;  // 64 buckets a power of two
// Buckets for all 64-bit values.
inline constexpr size_t kHistogramBuckets = (64 - kHistogramBits + 1)
                                            << kHistogramBits;

inline constexpr uint16_t HistogramBucket(uint64_t value) {
  constexpr uint64_t kLinear = uint64_t{1} << kHistogramBits;
  if (value < kLinear) return static_cast<uint16_t>(value);
  const int shift = std::bit_width(value) - 1 - kHistogramBits;
  return static_cast<uint16_t>(
      (static_cast<uint64_t>(shift) << kHistogramBits) + (value >> shift));
}

// The smallest and the largest value of a bucket below kHistogramBuckets.
inline constexpr uint64_t HistogramLow(uint16_t bucket) {
  constexpr int kLinear = 1 << kHistogramBits;
  if (bucket < kLinear) return bucket;
  const int shift = (bucket >> kHistogramBits) - 1;
  return static_cast<uint64_t>(kLinear + bucket % kLinear) << shift;
}
inline constexpr uint64_t HistogramHigh(uint16_t bucket) {
  return bucket + 1u == kHistogramBuckets ? UINT64_MAX
                                          : HistogramLow(bucket + 1) - 1;
}
// What stands for the values of a bucket.
inline constexpr uint64_t HistogramMiddle(uint16_t bucket) {
  const uint64_t low = HistogramLow(bucket);
  return low + (HistogramHigh(bucket) - low) / 2;
}

// Sums that stop at the top: sizes, durations and counts of a trace may be
// lies.
inline constexpr uint64_t AddTo(uint64_t a, uint64_t b) {
  return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

// Which of `count` values in order is the quantile, from 1. A share like 0.99
// is no exact number: what is above a whole one by less than a millionth is not
// above it.
inline uint64_t QuantileRank(double share, uint64_t count) {
  const double rank = share * static_cast<double>(count) + 0.999999;
  if (rank >= static_cast<double>(count)) return count;
  return std::max<uint64_t>(1, static_cast<uint64_t>(rank));
}

// The smallest and the largest of all values, as far as they are known.
struct Extremes {
  uint64_t min = 0;
  uint64_t max = UINT64_MAX;
};

// `cells`: in order of the buckets, each with a `bucket` and its `count`.
template <typename Cells>
uint64_t CountOf(const Cells& cells) {
  uint64_t count = 0;
  for (const auto& cell : cells) count = AddTo(count, cell.count);
  return count;
}
template <typename Cells>
uint64_t QuantileOf(const Cells& cells, double share, Extremes extremes) {
  const uint64_t count = CountOf(cells);
  if (count == 0) return 0;
  const uint64_t rank = QuantileRank(share, count);
  uint64_t seen = 0;
  for (const auto& cell : cells) {
    seen = AddTo(seen, cell.count);
    if (seen < rank) continue;
    const auto bucket = static_cast<uint16_t>(cell.bucket);
    uint64_t value = HistogramMiddle(bucket);
    // A minimum may be that of a part: it moves nothing out of its bucket.
    if (extremes.min <= HistogramHigh(bucket)) {
      value = std::max(value, extremes.min);
    }
    return std::min(value, extremes.max);
  }
  return extremes.max;
}

// For many histograms of few values: only the buckets that have any.
class SparseHistogram {
 public:
  void Add(uint64_t value, uint64_t count = 1) {
    AddBucket(HistogramBucket(value), count);
  }
  // Below kHistogramBuckets; others are hostile, and not counted.
  void AddBucket(uint16_t bucket, uint64_t count) {
    if (bucket >= kHistogramBuckets) return;
    const auto at = std::lower_bound(
        cells_.begin(), cells_.end(), bucket,
        [](const Cell& cell, uint16_t b) { return cell.bucket < b; });
    if (at != cells_.end() && at->bucket == bucket) {
      at->count = std::min(kMostInCell, AddTo(at->count, count));
    } else {
      cells_.insert(at, Cell(bucket, std::min(kMostInCell, count)));
    }
  }
  void Add(const SparseHistogram& other) {
    for (const Cell& cell : other.cells_) {
      AddBucket(static_cast<uint16_t>(cell.bucket), cell.count);
    }
  }
  void Clear() { cells_.clear(); }

  // Calls `use` with each bucket that has any and its count, in their order.
  template <typename Use>
  void ForEach(Use use) const {
    for (const Cell& cell : cells_) {
      use(static_cast<uint16_t>(cell.bucket), uint64_t{cell.count});
    }
  }

  uint64_t Count() const { return CountOf(cells_); }
  uint64_t Quantile(double share, Extremes extremes) const {
    return QuantileOf(cells_, share, extremes);
  }
  // How many buckets have any.
  size_t cells() const { return cells_.size(); }
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
  static constexpr uint64_t kMostInCell = (uint64_t{1} << 48) - 1;
  std::vector<Cell> cells_;
};

// For few histograms of many values: all buckets, made when first used, and
// what is known of the values besides.
class Histogram {
 public:
  void Add(uint64_t value) {
    if (counts_.empty()) counts_.resize(kHistogramBuckets);
    ++counts_[HistogramBucket(value)];
    extremes_ = count_ == 0 ? Extremes{value, value}
                            : Extremes{std::min(extremes_.min, value),
                                       std::max(extremes_.max, value)};
    ++count_;
    sum_ = AddTo(sum_, value);
  }
  void Add(const Histogram& other) {
    if (other.count_ == 0) return;
    if (counts_.empty()) counts_.resize(kHistogramBuckets);
    for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
    extremes_ = count_ == 0
                    ? other.extremes_
                    : Extremes{std::min(extremes_.min, other.extremes_.min),
                               std::max(extremes_.max, other.extremes_.max)};
    count_ += other.count_;
    sum_ = AddTo(sum_, other.sum_);
  }

  uint64_t count() const { return count_; }
  uint64_t sum() const { return sum_; }
  uint64_t min() const { return count_ == 0 ? 0 : extremes_.min; }
  uint64_t max() const { return count_ == 0 ? 0 : extremes_.max; }
  uint64_t Quantile(double share) const {
    std::vector<CellOf> cells;
    ForEach([&](uint16_t bucket, uint64_t count) {
      cells.push_back({bucket, count});
    });
    return QuantileOf(cells, share, extremes_);
  }
  // Calls `use` with each bucket that has any and its count, in their order.
  template <typename Use>
  void ForEach(Use use) const {
    for (size_t i = 0; i < counts_.size(); ++i) {
      if (counts_[i] != 0) use(static_cast<uint16_t>(i), counts_[i]);
    }
  }

 private:
  struct CellOf {
    uint16_t bucket;
    uint64_t count;
  };
  std::vector<uint64_t> counts_;  // by bucket
  uint64_t count_ = 0;
  uint64_t sum_ = 0;
  Extremes extremes_;
};

}  // namespace tracefs::tally
