// Mounts by statx(2) and the table of mounts (mount_info.h).
#include "tracefs/daemon/mount_info.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "tracefs/base/mount_table.h"

#ifndef STATX_MNT_ID_UNIQUE
#define STATX_MNT_ID_UNIQUE 0x4000U
#endif

namespace tracefs {
namespace {

// Fills id and device of what `name` in `parent` leads to.
bool LookUp(int parent, const char* name, int flags, MountPlace* place) {
  // DONT_SYNC: what the kernel knows must do.
  struct statx st;
  if (::statx(
          parent, name,
          AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC | flags,
          STATX_MNT_ID | STATX_MNT_ID_UNIQUE, &st) != 0) {
    return false;
  }
  place->device = ::makedev(st.stx_dev_major, st.stx_dev_minor);
  place->id = (st.stx_mask & (STATX_MNT_ID | STATX_MNT_ID_UNIQUE)) != 0
                  ? st.stx_mnt_id
                  : 0;
  place->mounted = (st.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) == 0 ||
                   (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
  return true;
}

}  // namespace

std::optional<MountPlace> FindMount(const std::string& path) {
  const size_t slash = path.rfind('/');
  MountPlace place;
  if (slash == std::string::npos || slash + 1 == path.size()) {
    errno = EINVAL;
    return std::nullopt;
  }
  place.name = path.substr(slash + 1);
  const std::string folder = slash == 0 ? "/" : path.substr(0, slash);
  place.parent.Reset(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!place.parent ||
      !LookUp(place.parent.get(), place.name.c_str(), 0, &place)) {
    return std::nullopt;
  }
  return place;
}

bool IsStillThere(const MountPlace& place) {
  MountPlace now;
  return LookUp(place.parent.get(), place.name.c_str(), 0, &now) &&
         now.id == place.id && now.device == place.device;
}

bool IsRootOfFileSystem(int fd) {
  // As the table has it: not STATX_MNT_ID_UNIQUE.
  struct statx st;
  if (::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_MNT_ID, &st) !=
          0 ||
      (st.stx_mask & STATX_MNT_ID) == 0 ||
      (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0) {
    return false;
  }
  return std::ranges::any_of(MountTable(), [&](const MountLine& mount) {
    return mount.id == st.stx_mnt_id &&
           (mount.root == "/" || mount.type == "btrfs");
  });
}

std::vector<std::string> MountsOfDevice(uint64_t device) {
  const std::string wanted =
      std::to_string(major(device)) + ':' + std::to_string(minor(device));
  std::vector<std::string> paths;
  for (MountLine& mount : MountTable()) {
    if (mount.device == wanted) {
      paths.insert(paths.begin(), std::move(mount.point));
    }
  }
  return paths;
}

}  // namespace tracefs
