// A set of 64-bit numbers as sorted, disjoint, non-adjacent intervals: what a
// field's predicates become when they are merged. Immutable value type.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <vector>

namespace tracefs {

struct Interval {
  uint64_t first = 0;
  uint64_t last = 0;  // included

  friend auto operator<=>(const Interval&, const Interval&) = default;
};

class IntervalSet {
 public:
  static constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

  IntervalSet() = default;  // empty
  static IntervalSet All() { return Range(0, kMax); }
  static IntervalSet Of(uint64_t value) { return Range(value, value); }
  // Empty if last < first.
  static IntervalSet Range(uint64_t first, uint64_t last);
  static IntervalSet OfAll(const std::vector<uint64_t>& values);
  // The union of intervals in any order.
  static IntervalSet OfAll(std::vector<Interval> intervals);

  bool empty() const { return intervals_.empty(); }
  bool full() const {
    return intervals_.size() == 1 && intervals_[0] == Interval{0, kMax};
  }
  const std::vector<Interval>& intervals() const { return intervals_; }
  bool Contains(uint64_t value) const;

  IntervalSet Complement() const;
  IntervalSet Union(const IntervalSet& other) const;
  IntervalSet Intersect(const IntervalSet& other) const;
  IntervalSet Minus(const IntervalSet& other) const {
    return Intersect(other.Complement());
  }
  bool IsSubsetOf(const IntervalSet& other) const {
    return Minus(other).empty();
  }

  friend auto operator<=>(const IntervalSet&, const IntervalSet&) = default;

 private:
  std::vector<Interval> intervals_;
};

}  // namespace tracefs
