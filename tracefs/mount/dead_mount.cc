#include "tracefs/mount/dead_mount.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>

#include "tracefs/base/unmount.h"
#include "tracefs/control/place.h"

namespace tracefs {
namespace {

// More than that were not left by services that start again.
constexpr int kMostStacked = 64;

bool IsOwnAndDead(const std::string& place) {
  const auto there = UppermostAt(place);
  if (!there || there->type != "fuse.tracefs") return false;
  const Result<MountIdentity> mount = IdentifyMount(place);
  if (!mount.ok() || mount->owner != ::geteuid()) return false;
  // A question to its daemon, which the kernel answers when there is none.
  struct statx st;
  return ::statx(AT_FDCWD, place.c_str(), AT_STATX_FORCE_SYNC,
                 STATX_BASIC_STATS, &st) != 0 &&
         (errno == ENOTCONN || errno == ECONNABORTED);
}

}  // namespace

Status RemoveDeadMounts(const std::string& mount_point,
                        const std::function<bool()>& stays_shut) {
  const std::string place = PlaceOf(mount_point);
  for (int i = 0; i < kMostStacked && IsOwnAndDead(place); ++i) {
    if (stays_shut()) {
      return Status::SystemSaid(
          EBUSY, "'" + place +
                     "' is a dead mount, and keeps shut what lies below "
                     "(when_full = fail): umount '" +
                     place + "' first, when nobody can work there untraced");
    }
    if (const int error = UnmountPath(place, /*lazy=*/true); error != 0) {
      return Status::System(error, "the dead mount at '" + place + "'");
    }
    std::cerr << "tracefs-mount: took away the dead mount at '" << place
              << "'\n";
  }
  return Status::Ok();
}

}  // namespace tracefs
