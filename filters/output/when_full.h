// What async and throttle do with a block that cannot go on: `when_full` and
// `deadline` of a config.
#pragma once

#include <chrono>

namespace tracefs {

struct WhenFull {
  // Wait for as long as `deadline`, then lose the block; without, lose it at
  // once. Lost blocks are counted in the trace.
  bool block = true;
  std::chrono::nanoseconds deadline = std::chrono::seconds(1);
};

}  // namespace tracefs
