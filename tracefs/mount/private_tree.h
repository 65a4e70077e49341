// A namespace of mounts of a command's own, in which a directory, or the whole
// root, is Tracefs for that command and for nobody else.
#pragma once

#include <string>

#include "tracefs/base/status.h"

namespace tracefs {

// Takes this process, and those that it will make, into a private mount
// namespace: what is mounted outside is seen inside, and not the other way
// round. An ordinary user gets a user namespace, too, in which he is himself.
// While there is one thread. kSystem, with what to do, where neither is
// allowed.
Status EnterPrivateMounts();

// Makes `mount_point`, where a file system is mounted that shows the whole
// root, the root of this process, with /proc, /sys, /dev and /run as they were.
// For a child: what it mounts for this is its own.
Status MakeRoot(const std::string& mount_point);

}  // namespace tracefs
