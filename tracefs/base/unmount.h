// Taking a mount away, by umount2(2) or, where that is not allowed, by the
// fusermount3 that made it.
#pragma once

#include <string>

namespace tracefs {

// Both return 0 or an errno value: EBUSY while the mount is in use. `lazy`: as
// umount -l. Nothing is asked of the mounted file system.

int UnmountPath(const std::string& path, bool lazy);
// fusermount3 undoes what it did; it alone may where an ordinary user may not.
int FusermountUnmount(const std::string& path, bool lazy);

}  // namespace tracefs
