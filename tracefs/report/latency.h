// The rows of the heat map of latencies: two a power of two, from 64 ns on; the
// first and the last one have what is shorter and longer, too.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "tracefs/tally/histogram.h"

namespace tracefs::report {

inline constexpr size_t kLatencyRows = 64;
inline constexpr int kFirstLatencyPower = 6;

constexpr size_t LatencyRowOf(uint64_t ns) {
  const int power = std::bit_width(ns | 1) - 1;
  if (power < kFirstLatencyPower) return 0;
  const size_t row = static_cast<size_t>(2 * (power - kFirstLatencyPower)) +
                     (ns >> (power - 1) & 1);
  return std::min(row, kLatencyRows - 1);
}
// The shortest duration of a row.
constexpr uint64_t LatencyRowBegin(size_t row) {
  if (row == 0) return 0;
  const uint64_t begin = uint64_t{1} << (kFirstLatencyPower + row / 2);
  return row % 2 == 0 ? begin : begin + begin / 2;
}
inline std::array<uint64_t, kLatencyRows> LatencyRowsOf(
    const tally::Histogram& latency) {
  std::array<uint64_t, kLatencyRows> rows{};
  latency.ForEach([&rows](uint16_t bucket, uint64_t count) {
    rows[LatencyRowOf(tally::HistogramLow(bucket))] += count;
  });
  return rows;
}

}  // namespace tracefs::report
