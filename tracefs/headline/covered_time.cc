#include "tracefs/headline/covered_time.h"

#include <algorithm>
#include <iterator>

namespace tracefs {

void CoveredTime::Add(uint64_t begin_ns, uint64_t length_ns) {
  uint64_t end_ns =
      begin_ns > UINT64_MAX - length_ns ? UINT64_MAX : begin_ns + length_ns;
  begin_ns = std::max(begin_ns, closed_ns_);
  if (begin_ns >= end_ns) return;
  // Nearly all come in order: what is touched is at the end.
  auto first = spans_.end();
  uint64_t before_ns = 0;
  while (first != spans_.begin() && std::prev(first)->end_ns >= begin_ns) {
    --first;
  }
  auto last = first;
  for (; last != spans_.end() && last->begin_ns <= end_ns; ++last) {
    before_ns += last->end_ns - last->begin_ns;
    begin_ns = std::min(begin_ns, last->begin_ns);
    end_ns = std::max(end_ns, last->end_ns);
  }
  covered_ns_ += end_ns - begin_ns - before_ns;
  if (first == last) {
    spans_.insert(first, Span{begin_ns, end_ns});
  } else {
    *first = {begin_ns, end_ns};
    spans_.erase(std::next(first), last);
  }
  if (spans_.size() > kMost) {
    closed_ns_ = spans_.front().end_ns;
    spans_.pop_front();
  }
}

}  // namespace tracefs
