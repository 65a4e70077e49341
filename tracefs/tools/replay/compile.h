// From traces to a plan.
#pragma once

#include <string>
#include <vector>

#include "tracefs/base/unique_fd.h"
#include "tracefs/replay/plan_builder.h"
#include "tracefs/tools/replay/options.h"

namespace tracefs {

struct Compiled {
  UniqueFd plan;  // none with --check
  replay::PlanHeader header;
  replay::Lacks lacks;
  bool from_trace = false;         // false: it was a plan already
  bool damaged = false;            // something recorded could not be read
  std::vector<std::string> notes;  // what was found wrong in the trace
  std::string drivers;             // property of the trace
  std::string visibility;
  uint64_t compile_ns = 0;
  size_t peak_nodes = 0;
  size_t model_bytes = 0;
};

// Reads the traces, or the plan if `options.traces` is one. `dry`: only looks
// what is lacking.
Result<Compiled> Compile(const ReplayOptions& options, bool dry);

// A point, in ns since `first_real_ns`, or as a sequence number.
struct Bound {
  uint64_t sequence = UINT64_MAX;
  uint64_t ns = UINT64_MAX;
};
Bound BoundOf(const TracePoint& point, uint64_t first_real_ns);

}  // namespace tracefs
