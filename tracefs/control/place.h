// Where the control socket of a mount lies: found from the mount point, by the
// device number of the mount, which no other live mount has.
//
//   root:   /run/tracefs/0:53.sock             (directory 0755, socket 0600)
//   others: $XDG_RUNTIME_DIR/tracefs/0:53.sock (directory 0700)
//           /run/user/1000/tracefs/0:53.sock
//           /tmp/tracefs-1000/0:53.sock        where there is no such directory
//           /tmp/tracefs-1000-x7f3Qa/0:53.sock where another user has made that
//
// Both server and client check anything there before using it: in /tmp anybody
// can make any name.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/mount_table.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {

// Of our mounts, in the table of mounts.
inline constexpr std::string_view kMountType = "fuse.tracefs";

struct MountIdentity {
  uint32_t major = 0;
  uint32_t minor = 0;
  uid_t owner = 0;  // who mounted it
  gid_t group = 0;  // and his group then

  std::string SocketName() const {
    return std::to_string(major) + ':' + std::to_string(minor) + ".sock";
  }
};

// The tracefs mount that `path` (its mount point, or anything in it) lies in.
// Sends no request to the mount if it is the mount point, so that a hanging one
// can be found, too. kInvalid if it is not in a tracefs mount.
Result<MountIdentity> IdentifyMount(const std::string& path);

// The mount that covers all others at that place, an absolute path without
// links.
std::optional<MountLine> UppermostAt(const std::string& mount_point);

// The absolute path without links; the last part need not answer. `path` as it
// was given if nothing is there.
std::string PlaceOf(const std::string& path);
// Where an open file is; empty if it has no place.
std::string PlaceOf(int fd);

// kSystem with EBUSY if the topmost mount at `mount_point` already is a tracefs
// mount of `source`. Neither need be absolute.
Status CheckNotMountedTwice(const std::string& source,
                            const std::string& mount_point);

// Where that mount is mounted in this mount namespace.
std::vector<std::string> MountPointsOf(const MountIdentity& mount);

// A mount point of every tracefs mount of this mount namespace that `uid` made,
// or of everybody's, in the order in which they were mounted.
std::vector<std::string> MountsOf(std::optional<uid_t> uid);

// The directories in which the sockets of `owner`'s mounts may lie, best first.
// $XDG_RUNTIME_DIR only for `owner` himself, not for root, and if it is his and
// closed to others.
std::vector<std::string> ControlDirectories(uid_t owner);
// And those that OpenOwnControlFolder has made where none of these would do.
std::vector<std::string> EveryControlDirectory(uid_t owner);

// Opens the directory (O_PATH) if only root and `owner` can have put something
// into it; makes it first if `create`.
Result<UniqueFd> OpenControlDirectory(const std::string& path, uid_t owner,
                                      bool create);

struct ControlFolder {
  std::string path;  // without links
  UniqueFd fd;       // O_PATH
};
// The first of `directories` in which `owner` may have a socket, made if
// missing. Before a mount at `mount_point` (without links): directories it is
// about to cover are left out, as a socket would not be found there. If there
// is none, why the last one was not taken.
Result<ControlFolder> OpenControlFolder(
    const std::vector<std::string>& directories, uid_t owner,
    const std::string& mount_point);

// The same for a mount of this user's own: the first of ControlDirectories, or
// if none is suitable, a new one below /tmp whose name could not be taken
// first.
Result<ControlFolder> OpenOwnControlFolder(const std::string& mount_point);

}  // namespace tracefs
