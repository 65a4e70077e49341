// The throttling filter (the quality-of-service filter that section 2.4 of the
// paper leaves for later): bounds operations or bytes per second. By waiting it
// slows down who is traced, so that nobody can flood the trace; by dropping it
// bounds what a trace costs, and says what is missing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "filters/output/when_full.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

struct ThrottleOptions {
  double ops_per_second = 0;    // 0 = not bounded
  double bytes_per_second = 0;  // of the blocks as this filter gets them
  size_t block_bytes = 0;
  WhenFull when_full = {};
};

// Time for tests; the real one by default.
struct ThrottleClock {
  std::function<uint64_t()> now_ns;
  std::function<void(uint64_t ns)> sleep;
  static ThrottleClock Real();
};

// A second's worth may come at once. Blocks without operations (the trace's
// head and end, losses, heartbeats) always pass.
std::unique_ptr<OutputFilter> MakeThrottle(
    const ThrottleOptions& options, std::unique_ptr<OutputFilter> next,
    ThrottleClock clock = ThrottleClock::Real());

// "1000/s", "10M/s", "60/m", "5/h": a number (with K, M, G, T: powers of 1024),
// a slash and a unit; not 0. Nothing on anything else.
std::optional<double> ParseRate(std::string_view text);

}  // namespace tracefs
