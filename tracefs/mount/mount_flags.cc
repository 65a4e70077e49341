#include "tracefs/mount/mount_flags.h"

#include <linux/mount.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "tracefs/base/units.h"

namespace tracefs {
namespace {

// A choice between two words; the source has the second if it has the flag.
struct Pair {
  std::string_view yes;
  std::string_view no;
  unsigned long flag;
};
constexpr Pair kPairs[] = {
    {"suid", "nosuid", ST_NOSUID},
    {"dev", "nodev", ST_NODEV},
    {"exec", "noexec", ST_NOEXEC},
};

// No word undoes it.
constexpr std::string_view kNoSymfollow = "nosymfollow";
constexpr unsigned long kStNoSymfollow = 0x2000;  // ST_NOSYMFOLLOW, Linux 5.10

constexpr std::string_view kMaxRead = "max_read=";

}  // namespace

MountFlags ChooseMountFlags(const std::vector<std::string>& given,
                            unsigned long source_flags, bool root) {
  const auto has = [&](std::string_view word) {
    return std::find(given.begin(), given.end(), word) != given.end();
  };
  MountFlags flags;
  std::string_view atime;     // the last word given on access times
  std::string_view diratime;  // and on those of directories
  for (const std::string& option : given) {
    if (option == "noatime" || option == "atime" || option == "relatime" ||
        option == "norelatime" || option == "strictatime" ||
        option == "nostrictatime") {
      atime = option;
    } else if (option == "diratime" || option == "nodiratime") {
      diratime = option;
    } else {
      flags.fuse_options.push_back(option);
    }
  }
  if (root) {
    for (const Pair& pair : kPairs) {
      if (has(pair.yes) || has(pair.no)) continue;
      flags.fuse_options.emplace_back(
          (source_flags & pair.flag) != 0 ? pair.no : pair.yes);
    }
    if ((source_flags & kStNoSymfollow) != 0 && !has(kNoSymfollow)) {
      flags.fuse_options.emplace_back(kNoSymfollow);
    }
  }
  // The kernel leaves the access times of a FUSE file to the daemon, whose
  // reads are those of our copy of the source's mount.
  const bool without =
      atime.empty() ? (source_flags & ST_NOATIME) != 0 : atime == "noatime";
  const bool without_dir = diratime.empty()
                               ? (source_flags & ST_NODIRATIME) != 0
                               : diratime == "nodiratime";
  if (without) flags.fuse_options.emplace_back("noatime");
  if (without_dir) flags.fuse_options.emplace_back("nodiratime");
  flags.asks_for_access_times = !atime.empty() || !diratime.empty();
  if (!atime.empty()) {
    flags.source_clear |= MOUNT_ATTR__ATIME;
    if (atime == "noatime") {
      flags.source_set |= MOUNT_ATTR_NOATIME;
    } else if (atime == "strictatime" || atime == "norelatime") {
      flags.source_set |= MOUNT_ATTR_STRICTATIME;
    } else {
      flags.source_set |= MOUNT_ATTR_RELATIME;
    }
  } else if (has("ro")) {
    // Reading must not write there either.
    flags.source_clear |= MOUNT_ATTR__ATIME;
    flags.source_set |= MOUNT_ATTR_NOATIME;
  }
  if (diratime == "nodiratime") {
    flags.source_set |= MOUNT_ATTR_NODIRATIME;
  } else if (diratime == "diratime") {
    flags.source_clear |= MOUNT_ATTR_NODIRATIME;
  }
  return flags;
}

Result<uint32_t> MaxReadOf(const std::vector<std::string>& options) {
  uint32_t bytes = 0;
  for (const std::string& option : options) {
    if (option.rfind(kMaxRead, 0) != 0) continue;
    const auto number = ParseUnsigned(option.substr(kMaxRead.size()));
    if (!number || *number > std::numeric_limits<uint32_t>::max()) {
      return Status::Invalid("-o " + option + ": a number of bytes is needed");
    }
    bytes = static_cast<uint32_t>(*number);
  }
  return bytes;
}

}  // namespace tracefs
