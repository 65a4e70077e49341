// Undo: what takes back some operations of a plan, worked out while the plan is
// replayed in a scratch directory: before each operation that is to be undone,
// what it is about to destroy is there to be kept.
//
// Steps are done last one first. A step that others have built on since, or for
// which bytes were not kept, says so and is not done.
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
#include "tracefs/replay/action.h"
#include "tracefs/replay/target_tree.h"

namespace tracefs::replay {

struct UndoStep {
  enum class Kind : uint8_t {
    kRemove,     // a file, link or node that was made
    kRemoveDir,  // a directory that was made
    kRename,     // `path` gets the name `other` back
    kExchange,
    kMakeFile,  // with `length` bytes at `stored`
    kMakeDir,
    kMakeLink,   // a symbolic link to `other`
    kMakeNode,   // FIFO or socket
    kLinkAgain,  // a further name of the file `other`
    kWriteBack,  // `length` bytes at `stored`, to `offset`
    kResize,     // to `length`
    kMode,
    kOwner,
    kXattr,        // `other` has `value` again
    kRemoveXattr,  // `other` was not there
  };
  Kind kind{};
  uint64_t sequence = 0;  // of the operation in its trace
  std::string path;       // below DIR
  std::string other;
  std::string value;
  uint32_t mode = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
  uint64_t stored = 0;
  std::vector<std::pair<std::string, std::string>> xattrs;
  uint64_t inode = 0;   // in the scratch directory
  std::string why_not;  // empty: it can be done

  std::string Text() const;  // "write back 10 bytes at 0 of a/f"
};

// Used by one thread at a time.
class UndoRecorder {
 public:
  // `store`: a file of its own, for bytes, at most `max_bytes`. Both outlive
  // it.
  UndoRecorder(const TargetTree& scratch, int store, uint64_t max_bytes)
      : scratch_(scratch), store_(store), max_bytes_(max_bytes) {}

  // About to be done. Those with kMarked are to be undone.
  Status Before(const Action& action);
  // The steps in the order in which they are to be done. Once.
  std::vector<UndoStep> Take();

 private:
  struct File;  // what an action is about

  File Locate(const Action& action) const;
  void NoteOthers(const Action& action);
  Status Undo(const Action& action);
  Status KeepGone(const Action& action, int dir, std::string_view name,
                  const std::string& path, std::string_view also);
  Status KeepBytes(const Action& action, const File& file, uint64_t begin,
                   uint64_t end);
  Status KeepAttributes(const Action& action, const File& file);
  Status KeepXattr(const Action& action, const File& file);
  UndoStep& Add(const Action& action, UndoStep::Kind kind, std::string path,
                uint64_t inode);
  Result<uint64_t> Store(int fd, uint64_t begin, uint64_t end);

  const TargetTree& scratch_;
  const int store_;
  const uint64_t max_bytes_;
  uint64_t stored_ = 0;
  std::vector<UndoStep> steps_;
  // Paths that operations to be undone have made, and when others changed them.
  std::unordered_set<std::string> made_names_;
  std::unordered_map<std::string, uint64_t> others_names_;
  std::unordered_map<uint64_t, uint64_t> others_;  // inode: last other change
};

// Does a step in the directory `root`; nothing outside of it is touched.
// `owners`: give files to who had them, which takes root.
Status DoUndoStep(int root, int store, bool owners, const UndoStep& step);

}  // namespace tracefs::replay
