#include "tracefs/replay/interval_set.h"

#include <algorithm>

namespace tracefs::replay {

bool IntervalSet::Add(uint64_t begin, uint64_t end,
                      const std::function<void(uint64_t, uint64_t)>& fresh) {
  if (begin >= end) return true;
  if (ends_.size() >= kMost) return Covers(begin, end);
  auto at = ends_.upper_bound(begin);
  if (at != ends_.begin() && std::prev(at)->second >= begin) --at;
  uint64_t from = begin;  // what lies before is there, or was told
  uint64_t new_begin = begin;
  uint64_t new_end = end;
  while (at != ends_.end() && at->first <= end) {
    if (fresh && at->first > from) fresh(from, at->first);
    from = std::max(from, at->second);
    new_begin = std::min(new_begin, at->first);
    new_end = std::max(new_end, at->second);
    at = ends_.erase(at);
  }
  if (fresh && from < end) fresh(from, end);
  ends_[new_begin] = new_end;
  return true;
}

bool IntervalSet::Covers(uint64_t begin, uint64_t end) const {
  if (begin >= end) return true;
  auto at = ends_.upper_bound(begin);
  return at != ends_.begin() && std::prev(at)->second >= end;
}

bool IntervalSet::Touches(uint64_t begin, uint64_t end) const {
  if (begin >= end) return false;
  const auto at = ends_.lower_bound(end);
  return at != ends_.begin() && std::prev(at)->second > begin;
}

void IntervalSet::Remove(uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  auto at = ends_.lower_bound(end);
  while (at != ends_.begin() && std::prev(at)->second > begin) {
    const auto [from, to] = *--at;
    if (from < begin && to > end && ends_.size() >= kMost) return;
    at = ends_.erase(at);
    if (to > end) at = ends_.emplace_hint(at, end, to);
    if (from < begin) at = ends_.emplace_hint(at, from, begin);
  }
}

}  // namespace tracefs::replay
