#include "tracefs/replay/acl.h"

#include <errno.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>

#include "tracefs/replay/open_beneath.h"

namespace tracefs::replay {
namespace {

// linux/posix_acl_xattr.h: a version, and entries of a tag, permissions and an
// id, little-endian.
constexpr size_t kAclHeaderBytes = 4;
constexpr size_t kAclEntryBytes = 8;
constexpr uint16_t kAclOwner = 0x01;
constexpr uint16_t kAclUser = 0x02;
constexpr uint16_t kAclOwningGroup = 0x04;
constexpr uint16_t kAclGroup = 0x08;
constexpr uint16_t kAclMask = 0x10;
constexpr uint16_t kAclOther = 0x20;

bool IsReadable(ByteSpan acl) {
  return acl.size() % kAclEntryBytes == kAclHeaderBytes;
}

// Its permissions, 0 to 7; none: there is no such entry.
std::optional<mode_t> Permissions(ByteSpan acl, uint16_t tag) {
  for (size_t at = kAclHeaderBytes; at < acl.size(); at += kAclEntryBytes) {
    if (LoadLe<uint16_t>(acl.data() + at) == tag) {
      return LoadLe<uint16_t>(acl.data() + at + sizeof tag) & 7;
    }
  }
  return std::nullopt;
}

}  // namespace

bool NamesSomebody(ByteSpan acl) {
  if (acl.empty()) return false;
  return !IsReadable(acl) || Permissions(acl, kAclUser) ||
         Permissions(acl, kAclGroup);
}

std::optional<mode_t> ModeOfAcl(ByteSpan acl) {
  if (!IsReadable(acl)) return std::nullopt;
  const auto owner = Permissions(acl, kAclOwner);
  auto group = Permissions(acl, kAclMask);
  if (!group) group = Permissions(acl, kAclOwningGroup);
  const auto other = Permissions(acl, kAclOther);
  if (!owner || !group || !other) return std::nullopt;
  return *owner << 6 | *group << 3 | *other;
}

bool DropInheritedAcls(int fd) {
  const std::string path = FdPath(fd);
  return std::ranges::all_of(std::array{kAccessAcl, kDefaultAcl},
                             [&](const char* name) {
                               return ::removexattr(path.c_str(), name) == 0 ||
                                      errno == ENODATA || errno == EOPNOTSUPP;
                             });
}

}  // namespace tracefs::replay
