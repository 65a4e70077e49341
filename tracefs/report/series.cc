#include "tracefs/report/series.h"

#include <algorithm>

namespace tracefs::report {
namespace {

void Join(const SeriesPoint& from, SeriesPoint* to) {
  to->count += from.count;
  to->errors += from.errors;
  to->bytes = tally::AddTo(to->bytes, from.bytes);
  to->time_ns = tally::AddTo(to->time_ns, from.time_ns);
}

}  // namespace

void Series::Widen(int shift) {
  if (shift == shift_) return;
  const int wider = shift - shift_;
  shift_ = shift;
  size_t kept = 0;
  for (size_t i = 0; i < points_.size(); ++i) {
    SeriesPoint point = points_[i];
    point.bin >>= wider;
    if (kept != 0 && points_[kept - 1].bin == point.bin) {
      Join(point, &points_[kept - 1]);
    } else {
      points_[kept++] = point;
    }
  }
  points_.resize(kept);
}

SeriesPoint& Series::PointOf(uint64_t bin) {
  // As a rule the last one, or one after it: time goes on.
  if (!points_.empty() && points_.back().bin == bin) return points_.back();
  if (points_.empty() || points_.back().bin < bin) {
    points_.push_back({.bin = bin});
    return points_.back();
  }
  const auto at = std::lower_bound(
      points_.begin(), points_.end(), bin,
      [](const SeriesPoint& p, uint64_t b) { return p.bin < b; });
  if (at->bin == bin) return *at;
  return *points_.insert(at, {.bin = bin});
}

int64_t Series::Add(uint64_t time_ns, int shift, const tally::Sums& what) {
  if (dropped_) return 0;
  const auto before = static_cast<int64_t>(points_.size());
  if (points_.empty()) shift_ = shift;
  Widen(shift);
  Join({.bin = 0,
        .count = static_cast<uint32_t>(what.count),
        .errors = static_cast<uint32_t>(what.errors),
        .bytes = what.bytes,
        .time_ns = what.time_ns},
       &PointOf(time_ns >> shift));
  return static_cast<int64_t>(points_.size()) - before;
}

void Series::Add(const Series& other, int shift) {
  if (dropped_) return;
  if (other.dropped_) {
    Drop();
    return;
  }
  if (points_.empty()) shift_ = shift;
  Widen(shift);
  Series from = other;
  for (const SeriesPoint& point : from.Points(shift)) {
    Join(point, &PointOf(point.bin));
  }
}

}  // namespace tracefs::report
