// Metrics: what is summed up of the operations of one thing, be it a file, a
// process, a user or all of the trace.
#pragma once

#include <algorithm>
#include <cstdint>

namespace tracefs::report {

// Sums that stop at the top: sizes and durations of a trace may be lies.
inline uint64_t AddTo(uint64_t a, uint64_t b) {
  return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

struct Metrics {
  uint64_t count = 0;       // operations
  uint64_t errors = 0;      // of them failed
  uint64_t read = 0;        // bytes
  uint64_t written = 0;     // bytes
  uint64_t copied = 0;      // bytes that are in both, read and written
  uint64_t time_ns = 0;     // in the file system
  uint64_t longest_ns = 0;  // of one operation

  // Moved (tally/transfer.h).
  uint64_t bytes() const {
    return AddTo(read, written) - std::min(copied, std::max(read, written));
  }

  void Add(const Metrics& other) {
    count += other.count;
    errors += other.errors;
    read = AddTo(read, other.read);
    written = AddTo(written, other.written);
    copied = AddTo(copied, other.copied);
    time_ns = AddTo(time_ns, other.time_ns);
    longest_ns = std::max(longest_ns, other.longest_ns);
  }
  friend bool operator==(const Metrics&, const Metrics&) = default;
};

}  // namespace tracefs::report
