// Mounts by ordinary users, through fusermount3: what must not be tried, and
// what is lost.
#pragma once

#include <string>
#include <vector>

#include "tracefs/base/status.h"

namespace tracefs {

// Without a private copy of the source's mount a mount point inside the source
// leads back into our own file system, without end. kInvalid if `mount_point`
// lies below `source`, an open directory; the source itself is no problem.
Status CheckNotInside(int source, const std::string& mount_point);

// What this mount cannot do because root did not make it, one phrase each;
// empty for root with its capabilities. `fuse_options`: those of -o.
std::vector<std::string> LostWithoutRoot(
    const std::vector<std::string>& fuse_options);

}  // namespace tracefs
