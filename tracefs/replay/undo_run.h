// An undo: works out in a scratch directory what takes operations back, shows
// it and does it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/replay/compile.h"
#include "tracefs/replay/interruption.h"
#include "tracefs/replay/target_tree.h"
#include "tracefs/replay/undo_apply.h"
#include "tracefs/replay/undo_step.h"
#include "tracefs/text/output_buffer.h"

namespace tracefs::replay {

struct UndoOptions {
  std::string root;      // DIR, for messages
  TargetOptions target;  // what steps may give, and how much may be kept
  std::string kept;      // where what was kept is now; empty: as the trace says
  bool json = false;
  bool apply = false;
  // What a summary of steps that were only shown says of doing them.
  std::string to_apply = "; --apply does the others";
  // UndoTarget::told_by_ns.
  uint64_t told_by_ns = 0;
};

struct UndoPlan {
  std::vector<UndoGroup> groups;  // in the order of doing them
  UniqueFd store;                 // bytes that they write back
  LiveFiles live;                 // what it was decided on
  // Why the trace says nothing that can be relied on; empty: it can be.
  std::string doubt;
  uint64_t differing = 0;         // results that the replay got otherwise
  uint64_t doubtful_callers = 0;  // Compiled::doubtful_callers
};

// What takes the marked operations back in the directory `root`. EINTR if it is
// told to end.
Result<UndoPlan> PlanUndo(const UndoOptions& options, const Compiled& compiled,
                          int root, Interruption* interruption);

// How many steps are not, or cannot be, done, and how many processes may have
// done something that was to be taken back, too. With `apply` all others are,
// unless the plan cannot be relied on, or it is told to end: after the
// operation at hand. Without it the plan stays as it is.
Result<uint64_t> ShowOrApplyUndo(const UndoOptions& options, UndoPlan& plan,
                                 int root, OutputBuffer& out);

}  // namespace tracefs::replay
