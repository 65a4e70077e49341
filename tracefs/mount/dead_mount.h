// Dead mounts: what a mount leaves when its daemon and its watchdog are both
// gone, or its connection was cut. Whoever goes there gets ENOTCONN.
#pragma once

#include <functional>
#include <string>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {

// Takes away dead tracefs mounts of this user that lie uppermost at
// `mount_point`, as they would be in the way of the next; says so on standard
// error. What is no such mount is left alone. True: one is left, since
// `stays_shut` says that what lies below is not to be bare for a moment; the
// new mount takes its place by ReplaceDeadMount. kSystem with EBUSY where that
// cannot be done: then somebody must have unmounted it.
Result<bool> RemoveDeadMounts(const std::string& mount_point,
                              const std::function<bool()>& stays_shut);

// A private copy of the mount that `source` would lead to if the dead mounts at
// `mount_point` were away, which they are in a namespace of its own only; with
// `flags` of open_tree(2). While there is one thread.
Result<UniqueFd> CloneBelowDeadMount(const std::string& mount_point,
                                     const std::string& source, unsigned flags);

// A place for a mount that is to come beneath a dead one: a directory that only
// this user can enter, which is gone with this object, as is what is mounted
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
// and takes that away: there is no moment without either.
Status ReplaceDeadMount(const PlaceAside& aside,
                        const std::string& mount_point);

}  // namespace tracefs
