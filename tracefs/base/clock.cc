#include "tracefs/base/clock.h"

#include <limits>

namespace tracefs {

ClockPair ClockPair::Now() {
  // The reading with the narrowest bracket of three: an interrupt between the
  // two clocks would shift every time stamp of the trace.
  ClockPair best;
  uint64_t best_width = std::numeric_limits<uint64_t>::max();
  for (int i = 0; i < 3; ++i) {
    const uint64_t before = MonotonicNs();
    const uint64_t real = RealNs();
    const uint64_t after = MonotonicNs();
    if (after - before < best_width) {
      best_width = after - before;
      best = {before + (after - before) / 2, real};
    }
  }
  return best;
}

}  // namespace tracefs
