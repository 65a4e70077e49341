#include "tracefs/base/common_clock.h"

#include <mutex>

namespace tracefs {

ClockPair SteadyClockPair(const ClockPair& previous, const ClockPair& now) {
  constexpr uint64_t kSteadyNs = kNsPerMs;
  const uint64_t predicted = previous.ToReal(now.monotonic_ns);
  const uint64_t error = predicted > now.real_ns ? predicted - now.real_ns
                                                 : now.real_ns - predicted;
  return error <= kSteadyNs ? previous : now;
}

ClockPair CommonClockPair() {
  static std::mutex mu;
  static ClockPair pair;  // guarded by mu
  const std::lock_guard lock(mu);
  pair = SteadyClockPair(pair, ClockPair::Now());
  return pair;
}

}  // namespace tracefs
