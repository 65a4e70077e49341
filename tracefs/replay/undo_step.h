// A step of an undo, and doing it in a directory.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/replay/action.h"

namespace tracefs::replay {

struct UndoStep {
  enum class Kind : uint8_t {
    kRemove,     // a file, link or node that was made
    kRemoveDir,  // a directory that was made
    kRename,     // `path` gets the name `other` back
    kExchange,
    kMakeFile,  // with `pieces`
    kMakeDir,
    kMakeLink,   // a symbolic link to `other`
    kMakeNode,   // FIFO or socket
    kLinkAgain,  // a further name of the file `other`
    kContents,   // `pieces` from `offset` on for `length` bytes; then `size`
    kMode,
    kOwner,
    kXattr,        // `other` has `value` again
    kRemoveXattr,  // `other` was not there
  };
  // Bytes that are kept: what lies between is zeros.
  struct Piece {
    uint64_t offset = 0;
    uint64_t length = 0;
    uint64_t stored = 0;  // where
  };

  Kind kind{};
  uint64_t file = kNoFile;  // which, by its number in the plan
  // Names, by the numbers of their directories; of a rename also the other.
  uint64_t dir = kNoFile;
  uint64_t other_dir = kNoFile;
  uint64_t other_file = kNoFile;  // of an exchange
  std::string name;
  std::string other_name;
  // Which operation had given the name that comes back; of an exchange also the
  // other one. 0: none.
  uint64_t given_by = 0;
  uint64_t other_given_by = 0;
  std::string path;  // below DIR, when it is done
  std::string other;
  std::string value;
  uint32_t mode = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t offset = 0;
  uint64_t length = 0;
  uint64_t size = 0;
  std::vector<Piece> pieces;
  std::vector<std::pair<std::string, std::string>> xattrs;
  // A file that operations to be undone have made and removed: if all of
  // them are undone, nothing has to be done.
  bool is_passing = false;
  bool is_nothing = false;  // and they are
  // Of what gives contents: the time of the last change before.
  bool has_mtime = false;
  int64_t mtime_ns = 0;

  std::string Text() const;  // "write back 10 bytes at 0 of a/f"
};

constexpr bool IsMaking(UndoStep::Kind kind) {
  return kind == UndoStep::Kind::kMakeFile ||
         kind == UndoStep::Kind::kMakeDir ||
         kind == UndoStep::Kind::kMakeLink ||
         kind == UndoStep::Kind::kMakeNode ||
         kind == UndoStep::Kind::kLinkAgain;
}

constexpr bool IsRemoving(UndoStep::Kind kind) {
  return kind == UndoStep::Kind::kRemove || kind == UndoStep::Kind::kRemoveDir;
}

constexpr bool IsChanging(UndoStep::Kind kind) {
  return kind == UndoStep::Kind::kContents || kind == UndoStep::Kind::kMode ||
         kind == UndoStep::Kind::kOwner || kind == UndoStep::Kind::kXattr ||
         kind == UndoStep::Kind::kRemoveXattr;
}

constexpr bool IsOfXattr(UndoStep::Kind kind) {
  return kind == UndoStep::Kind::kXattr || kind == UndoStep::Kind::kRemoveXattr;
}

constexpr bool IsDressing(UndoStep::Kind kind) {
  return kind == UndoStep::Kind::kMode || kind == UndoStep::Kind::kOwner;
}

// What takes one operation back.
struct UndoGroup {
  uint64_t sequence = 0;  // of the operation in its trace
  std::vector<UndoStep> steps;
  std::string why_not;  // empty: it can be done
};

// Makes what a step makes as `name` in the directory `dir`, which nobody else
// can enter, or nothing. `store`: what pieces are in. `owners`: it gets its
// owner back, which takes root. False with errno.
bool MakeWhole(int store, int dir, const std::string& name, bool owners,
               const UndoStep& step);

// Gives the file `fd` the contents of a step. False with errno: it may be half
// done.
bool PutContents(int store, const UndoStep& step, int fd);

// Keeps of the bytes [begin, end) of the file `fd` what is no hole as pieces of
// `step`, in `store` from `*at` on, which it moves along. EDQUOT where that
// would go beyond `most`.
Status KeepPieces(int fd, uint64_t begin, uint64_t end, int store,
                  uint64_t most, uint64_t* at, UndoStep* step);

// Keeps in `store`, at its end, what PutContents is about to destroy: `*before`
// is the step that gives it back.
bool KeepContents(int fd, const UndoStep& step, int store, UndoStep* before);

}  // namespace tracefs::replay
