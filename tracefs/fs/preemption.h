// Whether a request took long because its thread lost its processor, or because
// it had much to compute, and not because the store below made it wait: handing
// requests over helps with neither, and makes a busy machine busier.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <cstdint>

#include "tracefs/base/clock.h"

namespace tracefs {

// What this thread has computed so far. A system call.
inline uint64_t ComputedNs() { return ClockNs(CLOCK_THREAD_CPUTIME_ID); }

// The part of `took_ns` in which this thread did not compute; it had computed
// for `computed_ns` when that time began. A system call.
inline uint64_t NotComputed(uint64_t took_ns, uint64_t computed_ns) {
  return took_ns - std::min(took_ns, ComputedNs() - computed_ns);
}

// True if this thread was preempted (an involuntary context switch) since the
// last call. One system call: for what took long already.
inline bool LostProcessorSinceAsked() {
  thread_local long last = 0;  // as the kernel begins to count
  struct rusage usage {};
  if (::getrusage(RUSAGE_THREAD, &usage) != 0) return false;
  const bool lost = usage.ru_nivcsw != last;
  last = usage.ru_nivcsw;
  return lost;
}

}  // namespace tracefs
