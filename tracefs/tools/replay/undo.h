// --undo: works out in a scratch directory what takes operations back, shows it
// and does it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/replay/undo_apply.h"
#include "tracefs/replay/undo_step.h"
#include "tracefs/text/output_buffer.h"
#include "tracefs/tools/replay/compile.h"
#include "tracefs/tools/replay/interruption.h"
#include "tracefs/tools/replay/options.h"

namespace tracefs {

struct UndoPlan {
  std::vector<replay::UndoGroup> groups;  // in the order of doing them
  UniqueFd store;                         // bytes that they write back
  replay::LiveFiles live;                 // what it was decided on
  // Why the trace says nothing that can be relied on; empty: it can be.
  std::string doubt;
  uint64_t differing = 0;  // results that the replay got otherwise
};

// What takes the marked operations back in the directory `root`. EINTR if it is
// told to end.
Result<UndoPlan> PlanUndo(const ReplayOptions& options,
                          const Compiled& compiled, int root,
                          Interruption* interruption);

// How many steps are not, or cannot be, done. With --apply all others are,
// unless the plan cannot be relied on, or it is told to end: after the
// operation at hand.
Result<uint64_t> ShowOrApplyUndo(const ReplayOptions& options, UndoPlan plan,
                                 int root, OutputBuffer& out);

}  // namespace tracefs
