// Which groups of an undo can be done, and by which paths: the same for who
// only asks as for who has them done.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tracefs/replay/plan_file.h"
#include "tracefs/replay/undo.h"

namespace tracefs::replay {

// The directory that is to be changed, and the scratch directory that shows how
// the trace has left it.
struct UndoTarget {
  int root = -1;
  int scratch = -1;
  Grants grants;  // what steps may give
  // What the plan expects in the end (digest.h).
  std::map<std::string, TreeEntry> expected;
  // The trace was to keep what is destroyed (STR_KEEP): what files held in the
  // end is then told by their checksums, where it has no bytes of them.
  bool keeps = false;
  // Of a trace that is still being written, which tells all that had ended by
  // then, in ns since the epoch, and does not tell what files hold in its end:
  // what changed in `root` later than that, or later than any operation of the
  // plan, is not as the trace has left it. 0: the trace is complete.
  uint64_t told_by_ns = 0;
  uint64_t first_real_ns = 0;  // when the plan begins, likewise
  // Why the trace may lack changes of others (Compiled::left_out): then only
  // bytes that are all in it show that a file is as it has left it.
  std::string left_out = {};
};

// The groups in the order in which they are to be done, with paths, or why not.
// A group is refused where one of its steps is: where others have changed what
// it is about, where a later group that it rests on is refused, where the
// directory is not as the trace has left it.
// `*live`: what was looked at, for UndoApplier.
std::vector<UndoGroup> DecideUndo(UndoRecord record, const UndoTarget& target,
                                  LiveFiles* live);

}  // namespace tracefs::replay
