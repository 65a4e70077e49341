// Which groups of an undo can be done, and by which paths: the same for who
// only asks as for who has them done.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/replay/undo.h"

namespace tracefs::replay {

// The directory that is to be changed, and the scratch directory that shows how
// the trace has left it.
struct UndoTarget {
  int root = -1;
  int scratch = -1;
  bool owners = false;  // giving files away is allowed
  // Paths of files that have the recorded bytes in the scratch directory, so
  // that theirs can be compared.
  std::unordered_set<std::string> known;
};

// The groups in the order in which they are to be done, with paths, or why not.
// A group is refused where one of its steps is: where others have changed what
// it is about, where a later group that it rests on is refused, where the
// directory is not as the trace has left it.
std::vector<UndoGroup> DecideUndo(UndoRecord record, const UndoTarget& target);

// Paths of `target.known`, from a plan.
Status ReadKnown(int plan, std::unordered_set<std::string>* known);

}  // namespace tracefs::replay
