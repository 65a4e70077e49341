// Latencies of one operation: exact enough for percentiles (0.8 %), and rows of
// a heat map, two a power of two.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "tracefs/format/histogram.h"

namespace tracefs::report {

class LatencyHistogram {
 public:
  void Add(uint64_t ns) {
    if (buckets_.empty()) buckets_.resize(format::kHistogramBuckets);
    ++buckets_[format::HistogramBucket(ns)];
    shortest_ns_ = count_ == 0 ? ns : std::min(shortest_ns_, ns);
    longest_ns_ = std::max(longest_ns_, ns);
    ++count_;
  }
  void Add(const LatencyHistogram& other) {
    if (other.count_ == 0) return;
    if (buckets_.empty()) buckets_.resize(format::kHistogramBuckets);
    for (size_t i = 0; i < buckets_.size(); ++i) {
      buckets_[i] += other.buckets_[i];
    }
    shortest_ns_ = count_ == 0 ? other.shortest_ns_
                               : std::min(shortest_ns_, other.shortest_ns_);
    longest_ns_ = std::max(longest_ns_, other.longest_ns_);
    count_ += other.count_;
  }
  uint64_t count() const { return count_; }
  uint64_t shortest_ns() const { return shortest_ns_; }
  uint64_t longest_ns() const { return longest_ns_; }
  // The duration that `share` (0 to 1) of them do not exceed: the middle of its
  // bucket, between the shortest and the longest. 0 if there are none.
  uint64_t Quantile(double share) const {
    if (count_ == 0) return 0;
    auto left = static_cast<uint64_t>(
        std::max(1.0, share * static_cast<double>(count_) + 0.999999));
    for (size_t i = 0; i < buckets_.size(); ++i) {
      if (left <= buckets_[i]) {
        return std::clamp(format::HistogramMiddle(static_cast<uint16_t>(i)),
                          shortest_ns_, longest_ns_);
      }
      left -= buckets_[i];
    }
    return longest_ns_;
  }

  // Rows: two a power of two, from 64 ns on; the first and the last one have
  // what is shorter and longer, too.
  static constexpr size_t kRows = 64;
  static constexpr int kFirstPower = 6;
  static constexpr size_t RowOf(uint64_t ns) {
    const int power = std::bit_width(ns | 1) - 1;
    if (power < kFirstPower) return 0;
    const size_t row = static_cast<size_t>(2 * (power - kFirstPower)) +
                       (ns >> (power - 1) & 1);
    return std::min(row, kRows - 1);
  }
  // The shortest duration of a row.
  static constexpr uint64_t RowBegin(size_t row) {
    if (row == 0) return 0;
    const uint64_t begin = uint64_t{1} << (kFirstPower + row / 2);
    return row % 2 == 0 ? begin : begin + begin / 2;
  }
  std::array<uint64_t, kRows> Rows() const {
    std::array<uint64_t, kRows> rows{};
    for (size_t i = 0; i < buckets_.size(); ++i) {
      rows[RowOf(format::HistogramLow(static_cast<uint16_t>(i)))] +=
          buckets_[i];
    }
    return rows;
  }

 private:
  std::vector<uint64_t> buckets_;  // histogram.h
  uint64_t count_ = 0;
  uint64_t shortest_ns_ = 0;
  uint64_t longest_ns_ = 0;
};

}  // namespace tracefs::report
