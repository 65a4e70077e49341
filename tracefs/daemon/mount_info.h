// Which mount is where, found out without asking the mounted file system
// anything: it may be dead, or not yet served.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tracefs/base/unique_fd.h"

namespace tracefs {

// A mount as it was found: where, and which. The parent is the directory below
// the mount and does not keep the mount busy.
struct MountPlace {
  UniqueFd parent;  // O_PATH
  std::string name;
  uint64_t id = 0;      // never used twice since Linux 6.8; 0 before 5.8
  uint64_t device = 0;  // makedev() of the file system's own number
  bool mounted = true;  // false if there is no mount, but a file of one
};

// The mount on top at `path` (absolute). Empty, with errno set, if the path
// leads nowhere or is "/"; the last component may be any file.
std::optional<MountPlace> FindMount(const std::string& path);

// Whether what FindMount saw is on top there now.
bool IsStillThere(const MountPlace& place);

// Whether the directory behind `fd` is the root of its file system (or of its
// subvolume), and not a part of it. False if that cannot be told.
bool IsRootOfFileSystem(int fd);

// Where the file system with that number is mounted in this mount namespace,
// as /proc/self/mountinfo has it. Later mounts first.
std::vector<std::string> MountsOfDevice(uint64_t device);

}  // namespace tracefs
