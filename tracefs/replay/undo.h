// Undo: what takes back some operations of a plan, worked out while the plan is
// replayed in a scratch directory: before each operation that is to be undone,
// what it is about to destroy is there to be kept.
//
// Files are known by the numbers that the plan has given them, whatever inode
// they get, and wherever others have moved them since (UndoNames). What takes
// an operation back is one group of steps: all of it is done, or none. Groups
// are done last operation first. One that others have built on since, or for
// which bytes were not kept, says so, and nothing of it is done (undo_plan.h).
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/keep/kept_reader.h"
#include "tracefs/replay/action.h"
#include "tracefs/replay/plan_file.h"
#include "tracefs/replay/target_tree.h"
#include "tracefs/replay/undo_apply.h"
#include "tracefs/replay/undo_names.h"
#include "tracefs/replay/undo_step.h"

namespace tracefs::replay {

// What of a plan an undo is decided on.
struct UndoRecord {
  std::vector<UndoGroup> groups;  // in the order of the operations
  UndoNames names;                // in the end
  // When others changed a file for the last time.
  std::unordered_map<uint64_t, uint64_t> others;
  // When any operation of the plan that gives a file another time of change had
  // ended for the last time, in ns since the first one.
  std::unordered_map<uint64_t, uint64_t> touched;
  // Files that were given a time of change by name, which says nothing then.
  std::unordered_set<uint64_t> dated;
  // When the last of these to begin had begun, likewise.
  std::unordered_map<uint64_t, uint64_t> touched_from;
  // Files that operations to be undone have made.
  std::unordered_set<uint64_t> made;
  // Files whose mode or owner was changed after the trace.
  std::unordered_set<uint64_t> dressed;
  // Files whose contents cannot be compared with what the trace left, and those
  // of them whose times show that nobody has changed them since.
  std::unordered_set<uint64_t> unread;
  std::unordered_set<uint64_t> untouched;
  // How many names files have that the trace does not tell, where it tells that
  // they have some.
  std::unordered_map<uint64_t, uint64_t> untold_names;
  // As they were looked at in DIR.
  LiveFiles live;
};

// Used by one thread at a time.
class UndoRecorder {
 public:
  // `store`: a file of its own, for bytes, at most `max_bytes`. `kept`: what
  // the trace says was kept. All outlive it.
  UndoRecorder(const TargetTree& scratch, int store, uint64_t max_bytes,
               keep::KeptReader* kept)
      : scratch_(scratch), store_(store), max_bytes_(max_bytes), kept_(*kept) {}

  // An entry of the initial tree, in their order.
  void Place(const TreeEntry& entry);
  // About to be done. Those with kMarked are to be undone.
  Status Before(const Action& action);
  // Once.
  UndoRecord Take() { return std::move(record_); }

 private:
  struct File;  // what an action is about

  uint64_t DirOf(uint32_t slot) const;
  File Open(const Action& action) const;
  void NoteOthers(const Action& action);
  void NoteTime(const Action& action);
  void NoteUntoldNames(const Action& action);
  void Follow(const Action& action);
  Status Undo(const Action& action);
  Status UndoRename(const Action& action);
  Status UndoChange(const Action& action);
  Status KeepGone(const Action& action, uint64_t number, uint32_t dir_slot,
                  std::string_view name);
  Status KeepBytes(const Action& action, const File& file, uint64_t begin,
                   uint64_t end);
  Status KeepAttributes(const Action& action, const File& file);
  void KeepCapability(const Action& action, const File& file);
  void KeepXattr(const Action& action, const File& file);
  UndoStep& Add(const Action& action, UndoStep::Kind kind, uint64_t file);
  UndoStep& AddName(const Action& action, UndoStep::Kind kind, uint64_t file,
                    uint32_t dir_slot, std::string_view name);
  void Refuse(const std::string& why);
  Status Store(int fd, uint64_t begin, uint64_t end, UndoStep* step);
  void RefuseUnknown(const Action& action, const char* what);
  Status StoreKept(const Action& action, uint64_t begin, uint64_t end,
                   UndoStep* step);

  const TargetTree& scratch_;
  const int store_;
  const uint64_t max_bytes_;
  keep::KeptReader& kept_;
  uint64_t stored_ = 0;
  size_t steps_ = 0;
  std::unordered_map<uint32_t, uint64_t> dirs_{{kRootSlot, kRootFile}};
  // Device nodes: the scratch tree has other files in their places.
  std::unordered_set<uint64_t> devices_;
  UndoRecord record_;
};

}  // namespace tracefs::replay
