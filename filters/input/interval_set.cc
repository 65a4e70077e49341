#include "filters/input/interval_set.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace tracefs {

IntervalSet IntervalSet::Range(uint64_t first, uint64_t last) {
  IntervalSet set;
  if (first <= last) set.intervals_.push_back({first, last});
  return set;
}

IntervalSet IntervalSet::OfAll(const std::vector<uint64_t>& values) {
  std::vector<Interval> intervals;
  intervals.reserve(values.size());
  for (const uint64_t value : values) intervals.push_back({value, value});
  return OfAll(std::move(intervals));
}

IntervalSet IntervalSet::OfAll(std::vector<Interval> intervals) {
  std::sort(intervals.begin(), intervals.end());
  IntervalSet set;
  for (const Interval& next : intervals) {
    if (set.intervals_.empty()) {
      set.intervals_.push_back(next);
      continue;
    }
    Interval& last = set.intervals_.back();
    if (last.last == kMax || next.first <= last.last + 1) {
      last.last = std::max(last.last, next.last);
    } else {
      set.intervals_.push_back(next);
    }
  }
  return set;
}

bool IntervalSet::Contains(uint64_t value) const {
  const auto after = std::upper_bound(
      intervals_.begin(), intervals_.end(), value,
      [](uint64_t v, const Interval& i) { return v < i.first; });
  return after != intervals_.begin() && value <= std::prev(after)->last;
}

IntervalSet IntervalSet::Complement() const {
  IntervalSet result;
  uint64_t begin = 0;
  for (const Interval& i : intervals_) {
    if (i.first > begin) result.intervals_.push_back({begin, i.first - 1});
    if (i.last == kMax) return result;
    begin = i.last + 1;
  }
  result.intervals_.push_back({begin, kMax});
  return result;
}

IntervalSet IntervalSet::Union(const IntervalSet& other) const {
  std::vector<Interval> all = intervals_;
  all.insert(all.end(), other.intervals_.begin(), other.intervals_.end());
  return OfAll(std::move(all));
}

IntervalSet IntervalSet::Intersect(const IntervalSet& other) const {
  IntervalSet result;
  auto a = intervals_.begin();
  auto b = other.intervals_.begin();
  while (a != intervals_.end() && b != other.intervals_.end()) {
    const uint64_t first = std::max(a->first, b->first);
    const uint64_t last = std::min(a->last, b->last);
    if (first <= last) result.intervals_.push_back({first, last});
    if (a->last < b->last) {
      ++a;
    } else {
      ++b;
    }
  }
  return result;
}

}  // namespace tracefs
