// A command's own mount namespace, in which a directory, or the whole root, is
// traced for that command and no other process.
#pragma once

#include <string>

#include "tracefs/base/status.h"

namespace tracefs {

// Takes this process, and those that it will make, into a private mount
// namespace: mounts made outside are visible inside, but not the other way
// round. An ordinary user also gets a user namespace with the same user id.
// While there is only one thread. kSystem, with what to do, if neither is
// allowed.
Status EnterPrivateMounts();

// Makes `mount_point`, where a file system is mounted that shows the whole
// root, the root of this process, with /proc, /sys, /dev and /run as they were.
// For a child: its mounts for this are its own.
Status MakeRoot(const std::string& mount_point);

}  // namespace tracefs
