// Doing the steps of an undo in a directory that others may be changing.
//
// What a path leads to is opened (O_PATH) and looked at there: it must be the
// file, in the state, that the decision was made on. What changes a file goes
// through that descriptor. A name cannot be held so: what loses one is moved to
// a folder that nobody else can enter, and looked at there, before it gets
// another or is removed; what is made, is made there. So if names or
// directories are exchanged meanwhile, the group is refused, and all of it
// reversed.
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/replay/privilege.h"
#include "tracefs/replay/undo_step.h"

namespace tracefs::replay {

// Files of DIR, by their numbers in the plan, as they were looked at.
using LiveFiles = std::unordered_map<uint64_t, struct stat>;

// Used by one thread.
class UndoApplier {
 public:
  // `root`: DIR; `room`: a folder in it that nobody else can enter; `store`:
  // what pieces are in, to which is added. All outlive it.
  UndoApplier(int root, int room, int store, const Grants& grants,
              LiveFiles live)
      : root_(root),
        room_(room),
        store_(store),
        owners_(grants.Has(Privilege::kOwner)),
        live_(std::move(live)) {}

  // Does all of it, or nothing.
  Status Do(const UndoGroup& group);

 private:
  struct Gone {  // what is in `room` and is to be removed
    std::string name;
    UniqueFd fd;
    uint64_t file = kNoFile;
    bool folder = false;
    std::function<bool()> put_back;
  };

  bool DoStep(const UndoStep& step);
  bool Change(const UndoStep& step);
  bool ChangeContents(const UndoStep& step, int fd);
  bool ChangeXattr(const UndoStep& step, int fd);
  bool Remove(const UndoStep& step);
  bool Rename(const UndoStep& step);
  bool Exchange(const UndoStep& step);
  bool Make(const UndoStep& step);
  bool LinkAgain(const UndoStep& step);

  // The directory of `path`, which must be the file `dir`.
  UniqueFd Parent(const std::string& path, uint64_t dir, std::string* name);
  UniqueFd Reach(const std::string& path, uint64_t file);
  bool Proves(int fd, uint64_t file) const;
  void LookAgain(int fd, uint64_t file);
  // Takes `name` out of `dir` into `room` if it is `file`; its name there.
  std::string TakeOut(int dir, const std::string& name, uint64_t file,
                      UniqueFd* fd);
  bool PutDown(const std::string& from, int dir, const std::string& name);
  std::string NewName() { return std::to_string(++names_); }
  Status Commit();
  Status PutBack(const Status& failed);

  const int root_;
  const int room_;
  const int store_;
  const bool owners_;
  LiveFiles live_;
  uint64_t names_ = 0;
  // Of the group at hand: what takes each thing back, and descriptors that
  // these use.
  std::vector<std::function<bool()>> back_;
  std::vector<UniqueFd> held_;
  std::vector<Gone> gone_;
};

}  // namespace tracefs::replay
