// Looking at DIR before an undo is decided: what in it is not as the trace has
// left it was changed by others.
#pragma once

#include <cstdint>

#include "tracefs/replay/undo.h"
#include "tracefs/replay/undo_plan.h"

namespace tracefs::replay {

// In UndoRecord::others: later than any operation.
inline constexpr uint64_t kAfterAll = UINT64_MAX;

// Notes it in `*record`: what others have changed, what cannot be compared, the
// files that are in no trace, and what was looked at.
void SurveyUndo(const UndoTarget& target, UndoRecord* record);

}  // namespace tracefs::replay
