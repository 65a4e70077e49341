// From traces to a plan.
#pragma once

#include <string>
#include <vector>

#include "tracefs/base/unique_fd.h"
#include "tracefs/replay/check.h"
#include "tracefs/replay/plan_builder.h"
#include "tracefs/tools/replay/options.h"

namespace tracefs {

struct Compiled : replay::Checked {
  UniqueFd plan;         // none with --check
  std::string problems;  // what was found wrong in the traces, in lines
  std::string kept;      // the folder of what was kept, as the trace says
  uint64_t compile_ns = 0;
  size_t peak_nodes = 0;
  size_t model_bytes = 0;
};

// Reads the traces, or the plan if `options.traces` is one. `dry`: only looks
// what is lacking.
Result<Compiled> Compile(const ReplayOptions& options, bool dry);

// Where temporary files go.
std::string TemporaryFolder();

// A point, in ns since `first_real_ns`, or as a sequence number.
struct Bound {
  uint64_t sequence = UINT64_MAX;
  uint64_t ns = UINT64_MAX;
};
Bound BoundOf(const TracePoint& point, uint64_t first_real_ns);

}  // namespace tracefs
