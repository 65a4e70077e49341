// Series: how much one thing did when, only the bins in which it did anything.
#pragma once

#include <cstdint>
#include <vector>

#include "tracefs/tally/sums.h"

namespace tracefs::report {

struct SeriesPoint {
  uint64_t bin = 0;  // since the epoch: time >> shift
  uint32_t count = 0;
  uint32_t errors = 0;
  uint64_t bytes = 0;
  uint64_t time_ns = 0;
};

// Used by one thread.
class Series {
 public:
  // `shift`: the width of bins now, as TimeGrid has it; never less than before.
  // Returns how many points there are more than before (less, if negative).
  int64_t Add(uint64_t time_ns, int shift, const tally::Sums& what);
  void Add(const Series& other, int shift);
  // The points, in order, with bins of that width.
  const std::vector<SeriesPoint>& Points(int shift) {
    Widen(shift);
    return points_;
  }
  size_t size() const { return points_.size(); }
  // Forgets it all, for good: part of a series would be a lie.
  void Drop() {
    points_ = std::vector<SeriesPoint>();  // {} would only empty it
    dropped_ = true;
  }
  bool dropped() const { return dropped_; }

 private:
  void Widen(int shift);
  SeriesPoint& PointOf(uint64_t bin);

  std::vector<SeriesPoint> points_;
  int shift_ = 0;
  bool dropped_ = false;
};

}  // namespace tracefs::report
