// CoveredTime: how long at least one of many spans lasted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

namespace tracefs {

// Spans may come in any order and may overlap. Exact as long as none begins
// before the gap after kMost others; such a span counts from there on only, so
// that the answer is too small rather than too large. Used by one thread.
class CoveredTime {
 public:
  static constexpr size_t kMost = 4096;

  void Add(uint64_t begin_ns, uint64_t length_ns);
  uint64_t ns() const { return covered_ns_; }

 private:
  struct Span {
    uint64_t begin_ns = 0;
    uint64_t end_ns = 0;
  };
  std::deque<Span> spans_;  // in order, with gaps between them
  uint64_t closed_ns_ = 0;  // nothing is counted before
  uint64_t covered_ns_ = 0;
};

}  // namespace tracefs
