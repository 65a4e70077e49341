// What a setattr sets: the bits of ARG_VALID and their words, as the text of a
// trace and filters (`sets`) have them.
#pragma once

#include <linux/fuse.h>

#include <cstdint>
#include <string_view>

namespace tracefs {

struct SetAttribute {
  // How a setattr was made says nothing about the file; filters cannot ask.
  enum class About : uint8_t { kAttribute, kItsTime, kRequest };

  uint32_t bits;
  std::string_view name;
  About about;
};

inline constexpr SetAttribute kSettableAttributes[] = {
    {FATTR_MODE, "mode", SetAttribute::About::kAttribute},
    {FATTR_UID, "uid", SetAttribute::About::kAttribute},
    {FATTR_GID, "gid", SetAttribute::About::kAttribute},
    {FATTR_SIZE, "size", SetAttribute::About::kAttribute},
    {FATTR_ATIME, "atime", SetAttribute::About::kAttribute},
    {FATTR_MTIME, "mtime", SetAttribute::About::kAttribute},
    {FATTR_FH, "fh", SetAttribute::About::kRequest},
    // Together with atime and mtime: to the time it is.
    {FATTR_ATIME_NOW, "atime_now", SetAttribute::About::kItsTime},
    {FATTR_MTIME_NOW, "mtime_now", SetAttribute::About::kItsTime},
    {FATTR_LOCKOWNER, "lock_owner", SetAttribute::About::kRequest},
    {FATTR_CTIME, "ctime", SetAttribute::About::kRequest},
    {FATTR_KILL_SUIDGID, "kill_suidgid", SetAttribute::About::kRequest},
};

// The bits of all attributes.
inline constexpr uint32_t kEveryAttribute = [] {
  uint32_t bits = 0;
  for (const SetAttribute& row : kSettableAttributes) {
    if (row.about == SetAttribute::About::kAttribute) bits |= row.bits;
  }
  return bits;
}();

}  // namespace tracefs
