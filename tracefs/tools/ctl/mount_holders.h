// What keeps a mount alive, also after it was unmounted: processes with files
// of it open, or with their working directory in it, and copies of it in other
// mount namespaces. By /proc alone; nothing is asked of the mount, which may
// hang.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "tracefs/control/place.h"

namespace tracefs {

// "process 4242 (tail) has 2 open files, such as '/data/x'; …", a few of them
// and how many more; empty if none is to be seen. Of processes of others an
// ordinary user sees nothing. Names are escaped for terminals.
std::string HoldersText(const MountIdentity& mount);

// The same of these files of the mount alone: who has them open or mapped.
std::string FileUsersText(const MountIdentity& mount,
                          const std::set<uint64_t>& inodes);

// Whether the kernel still has the file system, so that requests may come:
// false if it has let go of it, or does not tell.
bool IsStillServed(const MountIdentity& mount);

}  // namespace tracefs
