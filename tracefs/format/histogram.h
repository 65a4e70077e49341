// The buckets of log-linear histograms, FORMAT.md section 8a: 64 a power of
// two, so that no value differs from the middle of its bucket by more than
// 0.8 %. Values below 128 have a bucket each.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace tracefs::format {

inline constexpr int kHistogramBits = 6;  // 64 buckets a power of two
// Buckets for all 64-bit values.
inline constexpr size_t kHistogramBuckets = (64 - kHistogramBits + 1)
                                            << kHistogramBits;

// A bucket and its count, as they stand in a message: u16 and u64.
inline constexpr size_t kHistogramPairBytes = 2 + 8;

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

}  // namespace tracefs::format
