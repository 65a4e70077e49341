// POSIX ACLs, as the kernel hands them out: extended attributes that are tied
// to the mode of a file, and that files inherit from their directory.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string_view>

#include "tracefs/base/bytes.h"

namespace tracefs::replay {

inline constexpr char kAccessAcl[] = "system.posix_acl_access";
inline constexpr char kDefaultAcl[] = "system.posix_acl_default";

inline bool IsAcl(std::string_view xattr) {
  return xattr == kAccessAcl || xattr == kDefaultAcl;
}

// Whether rights in it are those of a user or group by name. An unreadable one
// may have such; an empty one, which stands for none, has not.
bool NamesSomebody(ByteSpan acl);

// The permission bits that a file has with this access ACL. None: it is
// unreadable, or stands for none.
std::optional<mode_t> ModeOfAcl(ByteSpan acl);

// Takes from what was just made the ACLs that its directory has given it.
// `fd` may be O_PATH. False with errno.
bool DropInheritedAcls(int fd);

}  // namespace tracefs::replay
