// A folder that only who runs this can enter (0700), to work in before others
// may see what comes of it.
#pragma once

#include <string>
#include <string_view>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs::replay {

// Removes all that is in the directory `folder` (O_PATH will do), which stays.
// No link is followed and no other file system entered.
Status ClearTree(int folder);

// Gone with the object, with all that is in it.
class PrivateFolder {
 public:
  // Makes it in the directory `parent`, whoever that belongs to: `prefix` and
  // something random. kSystem; kInvalid if somebody exchanged it meanwhile.
  static Result<PrivateFolder> Make(int parent, std::string_view prefix);

  PrivateFolder(PrivateFolder&&) = default;
  PrivateFolder& operator=(PrivateFolder&&) = delete;
  ~PrivateFolder();

  int fd() const { return fd_.get(); }  // O_PATH
  const std::string& name() const { return name_; }
  // Before its time, to know whether it is gone; the error names it.
  Status Remove();
  // Leaves it where it is.
  void Keep() { parent_.Reset(); }

 private:
  PrivateFolder(UniqueFd parent, std::string name)
      : parent_(std::move(parent)), name_(std::move(name)) {}

  UniqueFd parent_;
  UniqueFd fd_;
  std::string name_;
};

// Whether nothing is in the directory `folder`, but what mkfs of ext4 leaves in
// a new file system.
Result<bool> IsEmptyFolder(int folder);

// Whether others may change what is in the directory `folder` while this
// process works in it: kInvalid then, with what to do. They may not if only who
// runs this may enter it, or a directory that it is in; or, if not
// `makes_foreign`, if all directories in it are ours and nobody else may write
// to them.
Status CheckNobodyElse(int folder, bool makes_foreign);

}  // namespace tracefs::replay
