// From traces to a plan.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tracefs/base/time_window.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/replay/check.h"
#include "tracefs/replay/plan_builder.h"

namespace tracefs::replay {

// A place in a trace: an operation by its number, or a time.
struct TracePoint {
  std::optional<uint64_t> sequence = {};
  TimeSpec time = {};  // if that is not said; never one that needs the end
};

struct CompileOptions {
  std::vector<std::string> traces;  // or a plan
  std::vector<std::string> keys;
  std::string filter;
  std::optional<TracePoint> from;
  std::optional<TracePoint> to;
  std::string undo;  // a filter: what is to be taken back
  std::string plan;  // where to keep the plan; empty: nowhere
  BuilderOptions builder;
  // How messages name the command, and what gave it `undo`.
  std::string says = "tracefs-replay: ";
  std::string undo_origin = "--undo";
  // How many bytes were read, now and then; may be null.
  std::function<void(uint64_t)> progress;
  // Of traces that are still being written: operations that ended after this
  // (in ns since the epoch) are left out, and what the traces lack at their
  // ends is no damage. 0: they are complete.
  uint64_t ended_by_ns = 0;
  // Folders that undos have left which were killed: what those did is taken
  // back as well.
  std::vector<std::string> left_rooms;
};

struct Compiled : Checked {
  UniqueFd plan;         // none with --check
  std::string problems;  // what was found wrong in the traces, in lines
  std::string kept;      // the folder of what was kept, as the trace says
  uint64_t compile_ns = 0;
  size_t peak_nodes = 0;
  size_t model_bytes = 0;
  std::string mount_point;  // of the first trace that has one
  // Processes that `undo` does not mean as far as is known (CallerWords).
  uint64_t doubtful_callers = 0;
  // Why changes may be missing that none of the traces counts as lost, as a
  // sentence about the trace: "its filter …"; empty: none can be.
  std::string left_out;
};

// Reads the traces, or the plan if `options.traces` is one. `dry`: only looks
// what is lacking.
Result<Compiled> Compile(const CompileOptions& options, bool dry);

// The files of traces, with all other parts of those that are rotated that lie
// beside them: an undo must not go by one part alone.
std::vector<std::string> WithAllParts(const std::vector<std::string>& traces);

// Where temporary files go.
std::string TemporaryFolder();

// A point, in ns since `first_real_ns`, or as a sequence number.
struct Bound {
  uint64_t sequence = UINT64_MAX;
  uint64_t ns = UINT64_MAX;
};
Bound BoundOf(const TracePoint& point, uint64_t first_real_ns);

}  // namespace tracefs::replay
