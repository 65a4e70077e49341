// A directory from whose descriptor no other can be reached.
//
// A descriptor of a directory is a way into the file system around it, whatever
// root directory a process has: openat(fd, "../../etc/shadow"). Whoever keeps
// one into a sandbox keeps this instead.
#pragma once

#include "tracefs/base/unique_fd.h"

namespace tracefs {

// The same directory in a private copy of its mount, which begins there: ".."
// stays inside, no device can be opened, no program run. O_PATH. Where that is
// not allowed (ordinary users, for whom nothing is gained by the way out;
// inside a sandbox) or `folder` is not a directory: `folder` as it is.
//
// The copy does not keep the file system from being unmounted elsewhere, as
// `folder` does: hold another file there where that matters.
UniqueFd EncloseFolder(UniqueFd folder);

}  // namespace tracefs
