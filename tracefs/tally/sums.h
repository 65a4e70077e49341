// Sums: what is added up of operations, whatever they have in common: all of a
// kind, or of a file, a process, a user, a trace. Mean, rate and share are made
// from these and nothing else.
//
// Sums stop at the top: sizes and durations of a trace may be lies.
#pragma once

#include <algorithm>
#include <cstdint>

#include "tracefs/event/event.h"
#include "tracefs/tally/histogram.h"
#include "tracefs/tally/transfer.h"

namespace tracefs::tally {

struct Sums {
  uint64_t count = 0;    // operations that have run
  uint64_t errors = 0;   // of them failed
  uint64_t bytes = 0;    // moved: each byte once (transfer.h)
  uint64_t read = 0;     // of `bytes`; what a copy moves is in both
  uint64_t written = 0;  // see above
  uint64_t time_ns = 0;  // of operations with a duration
  uint64_t max_ns = 0;

  void Add(const Sums& other) {
    count = AddTo(count, other.count);
    errors = AddTo(errors, other.errors);
    bytes = AddTo(bytes, other.bytes);
    read = AddTo(read, other.read);
    written = AddTo(written, other.written);
    time_ns = AddTo(time_ns, other.time_ns);
    max_ns = std::max(max_ns, other.max_ns);
  }

  friend bool operator==(const Sums&, const Sums&) = default;
};

// With what means and quantiles of durations need. (The page has hundreds of
// thousands of sums without.)
struct TimedSums : Sums {
  uint64_t timed = 0;            // operations with a duration
  uint64_t min_ns = UINT64_MAX;  // as it is: none is known

  void Add(const TimedSums& other) {
    Sums::Add(other);
    timed = AddTo(timed, other.timed);
    min_ns = std::min(min_ns, other.min_ns);
  }
  void AddTime(uint64_t ns) {
    timed = AddTo(timed, 1);
    time_ns = AddTo(time_ns, ns);
    min_ns = std::min(min_ns, ns);
    max_ns = std::max(max_ns, ns);
  }

  // Over the operations with a duration; 0 if there are none.
  uint64_t MeanNs() const { return timed == 0 ? 0 : time_ns / timed; }
  // Where quantiles of the durations lie.
  Extremes Times() const {
    return {min_ns == UINT64_MAX ? 0 : min_ns,
            timed == 0 ? UINT64_MAX : max_ns};
  }
};

// What an operation that has run adds.
inline TimedSums SumsOf(const Event& event) {
  const Bytes bytes = BytesOf(event);
  TimedSums sums;
  sums.count = 1;
  sums.errors = Failed(event) ? 1 : 0;
  sums.bytes = bytes.moved();
  sums.read = bytes.read;
  sums.written = bytes.written;
  if (event.Has(Field::kLatency)) sums.AddTime(event.Get(Field::kLatency));
  return sums;
}

}  // namespace tracefs::tally
