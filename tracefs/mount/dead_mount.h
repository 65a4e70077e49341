// Dead mounts: what a mount leaves when its daemon and its watchdog are both
// gone, or its connection was cut. Every access gets ENOTCONN.
#pragma once

#include <functional>
#include <string>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {

// Removes dead tracefs mounts of this user that lie topmost at `mount_point`,
// as they would be in the way of the next; says so on standard error. Any other
// mount is left alone. True: one is left, because `stays_shut` says that the
// directory below must not be exposed even for a moment; the new mount takes
// its place by ReplaceDeadMount. kSystem with EBUSY if that is impossible: then
// the user has to unmount it.
Result<bool> RemoveDeadMounts(const std::string& mount_point,
                              const std::function<bool()>& stays_shut);

// A private copy of the mount that `source` would lead to without the dead
// mounts at `mount_point`, which are removed only in a private namespace; with
// `flags` of open_tree(2). While there is only one thread.
Result<UniqueFd> CloneBelowDeadMount(const std::string& mount_point,
                                     const std::string& source, unsigned flags);

// A place for a mount that is to go beneath a dead one: a directory that only
// this user can enter; it is removed with this object, as is anything mounted
// there.
class PlaceAside {
 public:
  static Result<PlaceAside> Make();
  PlaceAside(PlaceAside&& other) noexcept;
  PlaceAside& operator=(PlaceAside&&) = delete;
  ~PlaceAside();
  const std::string& path() const { return path_; }

 private:
  explicit PlaceAside(std::string path) : path_(std::move(path)) {}
  std::string path_;  // empty: moved from
};

// Puts the mount at `aside` beneath the dead one at `mount_point` (Linux 6.5),
// and removes that one: there is no moment without either.
Status ReplaceDeadMount(const PlaceAside& aside,
                        const std::string& mount_point);

}  // namespace tracefs
