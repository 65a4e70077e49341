// LatencyCells: how many operations of a kind took how long in each bin of
// time, for quantiles of any row of bins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tracefs/report/time_grid.h"
#include "tracefs/tally/histogram.h"

namespace tracefs::report {

// Rows are buckets of histograms, some of them together: eight a power of two.
inline constexpr int kCellShift = 3;

// Used by one thread.
class LatencyCells {
 public:
  void Add(uint64_t took_ns, uint64_t real_ns, const Bins& coarse) {
    const size_t row = tally::HistogramBucket(took_ns) >> kCellShift;
    if (row >= rows_.size()) rows_.resize(row + 1);
    ++rows_[row].At(coarse, real_ns);
  }
  // By row; the bins of each are brought up to date when they are asked for.
  std::vector<BinRow>& rows() { return rows_; }

 private:
  std::vector<BinRow> rows_;
};

}  // namespace tracefs::report
