// The one clock pair of all traces that this process writes: an operation that
// several tracers record has the same real time in each of their traces, unless
// the clock was set while one of them had it in an open block.
//
// Tested by tests/unit/base/common_clock_test.cc.
#pragma once

#include "tracefs/base/clock.h"

namespace tracefs {

// `previous` while it predicts the real time of `now` to a millisecond, so that
// real times keep their order, else `now`.
ClockPair SteadyClockPair(const ClockPair& previous, const ClockPair& now);

// The pair to write now. Threads: any; takes a lock for a moment.
ClockPair CommonClockPair();

}  // namespace tracefs
