// Ranges: which numbers are there, or missing, as ranges.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>

namespace tracefs {

class Ranges {
 public:
  // From `first` up to, not including, `end`.
  void Add(uint64_t first, uint64_t end) {
    if (first >= end) return;
    auto at = ranges_.upper_bound(first);
    if (at != ranges_.begin() && std::prev(at)->second >= first) {
      --at;
      first = at->first;
    }
    while (at != ranges_.end() && at->first <= end) {
      end = std::max(end, at->second);
      at = ranges_.erase(at);
    }
    ranges_[first] = end;
  }
  void Remove(uint64_t number) {
    auto at = ranges_.upper_bound(number);
    if (at == ranges_.begin() || std::prev(at)->second <= number) return;
    --at;
    const uint64_t first = at->first;
    const uint64_t end = at->second;
    ranges_.erase(at);
    Add(first, number);
    Add(number + 1, end);
  }
  bool Has(uint64_t number) const {
    const auto at = ranges_.upper_bound(number);
    return at != ranges_.begin() && std::prev(at)->second > number;
  }
  bool empty() const { return ranges_.empty(); }

 private:
  std::map<uint64_t, uint64_t> ranges_;  // first, end
};

}  // namespace tracefs
