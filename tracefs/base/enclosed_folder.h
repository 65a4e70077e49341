// A directory from whose descriptor no other can be reached.
//
// A descriptor of a directory is a way into the file system around it, whatever
// root directory a process has: openat(fd, "../../etc/shadow"). To take one
// into a sandbox, take this instead.
#pragma once

#include "tracefs/base/unique_fd.h"

namespace tracefs {

// The same directory in a private copy of its mount, which begins there: ".."
// stays inside, no device can be opened, no program run. O_PATH. If that is not
// allowed (ordinary users, who gain nothing by the way out; inside a sandbox)
// or `folder` is not a directory: `folder` unchanged.
//
// Unlike `folder`, the copy does not keep the file system from being unmounted
// elsewhere: hold another file there if that matters.
UniqueFd EncloseFolder(UniqueFd folder);

}  // namespace tracefs
