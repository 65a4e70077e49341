// What the rows of a histogram are, and how many values each has.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>

namespace tracefs::query {

// Rows begin at powers of two, or each so many after the one before.
class HistogramCuts {
 public:
  // 0: powers of two.
  explicit HistogramCuts(uint64_t width = 0) : width_(width) {}

  bool is_linear() const { return width_ != 0; }
  uint64_t LowOf(uint64_t value) const {
    return is_linear() ? value - value % width_ : std::bit_floor(value);
  }
  // The last value of the row that begins at `low`.
  uint64_t HighOf(uint64_t low) const {
    if (is_linear()) return low + std::min(width_ - 1, UINT64_MAX - low);
    return low == 0 ? 0 : 2 * (low - 1) + 1;
  }

 private:
  uint64_t width_;
};

// Counts by row, of so many rows at most.
class HistogramRows {
 public:
  static constexpr size_t kMost = size_t{1} << 16;

  explicit HistogramRows(uint64_t width = 0) : cuts_(width) {}

  void Add(uint64_t value) {
    const uint64_t low = cuts_.LowOf(value);
    const auto at = by_low_.find(low);
    if (at != by_low_.end()) {
      ++at->second;
    } else if (by_low_.size() < kMost) {
      by_low_.emplace(low, 1);
    } else {
      ++no_room_;
    }
  }

  const std::map<uint64_t, uint64_t>& by_low() const { return by_low_; }
  uint64_t no_room() const { return no_room_; }

 private:
  HistogramCuts cuts_;
  std::map<uint64_t, uint64_t> by_low_;
  uint64_t no_room_ = 0;  // values of rows beyond
};

}  // namespace tracefs::query
