// --undo: works out in a scratch directory what takes operations back, shows it
// and does it.
#pragma once

#include <cstdint>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/export/output_buffer.h"
#include "tracefs/replay/undo.h"
#include "tracefs/tools/replay/compile.h"
#include "tracefs/tools/replay/options.h"

namespace tracefs {

struct UndoPlan {
  std::vector<replay::UndoStep> steps;
  UniqueFd store;           // bytes that they write back
  uint64_t mismatched = 0;  // results that the scratch directory got otherwise
};

Result<UndoPlan> PlanUndo(const ReplayOptions& options,
                          const Compiled& compiled);

// How many steps are not, or cannot be, done. With --apply all others are,
// unless the plan cannot be relied on.
Result<uint64_t> ShowOrApplyUndo(const ReplayOptions& options,
                                 const UndoPlan& plan, int root,
                                 OutputBuffer& out);

}  // namespace tracefs
