// See user_mount.h.
#include "tracefs/daemon/user_mount.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <optional>

#include "tracefs/base/folder.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/daemon/capabilities.h"

namespace tracefs {
Status CheckNotInside(int source, const std::string& mount_point) {
  const UniqueFd here(
      ::open(mount_point.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!here) return Status::System(errno, "mount point '" + mount_point + "'");
  const std::optional<bool> inside = IsAbove(source, here.get());
  if (!inside) return Status::System(errno, "above '" + mount_point + "'");
  if (!*inside) return Status::Ok();
  return Status::Invalid(
      "'" + mount_point +
      "' lies inside the source; an ordinary user's mount would lead into "
      "itself there. Mount elsewhere, over the source itself, or as root");
}

namespace {

// Whether some users have no number here (user_namespaces(7)).
bool MapsUsers() {
  std::ifstream map("/proc/self/uid_map");
  uint64_t first = 0;
  uint64_t outside = 0;
  uint64_t count = 0;
  return (map >> first >> outside >> count) && count != UINT32_MAX;
}

}  // namespace

std::vector<std::string> LostWithoutRoot(
    const std::vector<std::string>& fuse_options) {
  const uint64_t capabilities = EffectiveCapabilities();
  const auto has = [&](int capability) {
    return (capabilities & CapabilityBit(capability)) != 0;
  };
  std::vector<std::string> lost;
  if (MapsUsers()) {
    lost.emplace_back(
        "a user namespace: owners and groups without a number in it appear as "
        "65534, in the trace, too; chown and chgrp to them fail with EINVAL "
        "and are not recorded");
  }
  if (!has(CAP_SETUID) || !has(CAP_SETGID) || !has(CAP_CHOWN)) {
    const bool shared = std::find(fuse_options.begin(), fuse_options.end(),
                                  "allow_other") != fuse_options.end();
    if (!shared && !has(CAP_SYS_ADMIN)) {
      lost.emplace_back("only this user sees the mount");
    }
    lost.emplace_back(
        "everything is done as this user: what others make would be this "
        "user's, chown and device nodes fail");
  }
  if (!has(CAP_SYS_ADMIN)) {
    lost.emplace_back("no FUSE passthrough: all data goes through the daemon");
    lost.emplace_back("no trusted.* attributes");
    lost.emplace_back(
        "no private copy of the source: what is mounted in it is passed "
        "through, too");
    lost.emplace_back("of the sandbox only no_new_privs and seccomp");
  }
  if (!has(CAP_DAC_READ_SEARCH)) {
    lost.emplace_back(
        "no file handles: beyond so many descriptors, files that the kernel "
        "knows are opened again by their names");
  }
  return lost;
}

}  // namespace tracefs
