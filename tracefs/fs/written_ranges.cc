#include "tracefs/fs/written_ranges.h"

#include <algorithm>

namespace tracefs {

void WrittenRanges::Add(uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  if (widened_ && count_ != 0) {
    begin = std::min(begin, ranges_[0].begin);
    end = std::max(end, ranges_[0].end);
  }
  WrittenRange* const first = ranges_.data();
  WrittenRange* const last = first + count_;
  // Those that overlap or touch it become one with it.
  WrittenRange* const from = std::lower_bound(
      first, last, begin,
      [](const WrittenRange& r, uint64_t b) { return r.end < b; });
  WrittenRange* to = from;
  for (; to != last && to->begin <= end; ++to) {
    begin = std::min(begin, to->begin);
    end = std::max(end, to->end);
  }
  if (from != to) {
    *from = {begin, end};
    count_ = static_cast<size_t>(std::move(to, last, from + 1) - first);
    return;
  }
  if (count_ < kMost) {
    std::move_backward(from, last, last + 1);
    *from = {begin, end};
    ++count_;
    return;
  }
  Widen();
  Add(begin, end);
}

void WrittenRanges::Widen() {
  if (count_ > 1) ranges_[0].end = ranges_[count_ - 1].end;
  count_ = std::min<size_t>(count_, 1);
  widened_ = true;
}

void WrittenRanges::Add(const WrittenRanges& others) {
  for (const WrittenRange& r : others.ranges()) Add(r.begin, r.end);
  if (others.widened_) Widen();
}

}  // namespace tracefs
