#include "tracefs/mount/dead_mount.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <iostream>
#include <span>
#include <utility>
#include <vector>

#include "tracefs/base/passed_files.h"
#include "tracefs/base/unmount.h"
#include "tracefs/control/place.h"

#ifndef MOVE_MOUNT_BENEATH
#define MOVE_MOUNT_BENEATH 0x00000200
#endif

namespace tracefs {
namespace {

// Restarting services do not leave more than this.
constexpr int kMostStacked = 64;

bool IsOwnAndDead(const std::string& place) {
  const auto there = UppermostAt(place);
  if (!there || there->type != kMountType) return false;
  const Result<MountIdentity> mount = IdentifyMount(place);
  if (!mount.ok() || mount->owner != ::geteuid()) return false;
  // A request to its daemon, which the kernel answers if there is none.
  struct statx st;
  return ::statx(AT_FDCWD, place.c_str(), AT_STATX_FORCE_SYNC,
                 STATX_BASIC_STATS, &st) != 0 &&
         (errno == ENOTCONN || errno == ECONNABORTED);
}

// Whether the mount under the topmost one at `place` is one of ours, too.
bool LiesOnAnother(const std::string& place) {
  std::vector<std::string> types;
  for (MountLine& line : MountTable()) {
    if (line.point == place) types.push_back(std::move(line.type));
  }
  return types.size() >= 2 && types[types.size() - 2] == kMountType;
}

long MoveMount(int from, int to, const char* path, unsigned flags) {
  return ::syscall(SYS_move_mount, from, "", to, path,
                   MOVE_MOUNT_F_EMPTY_PATH | flags);
}

// An unknown flag, and a caller who may not mount, are refused before the
// descriptor is looked at.
bool CanReplace() {
  return MoveMount(-1, AT_FDCWD, "/", MOVE_MOUNT_BENEATH) != 0 &&
         errno == EBADF;
}

UniqueFd OpenTree(const std::string& path, unsigned flags) {
  return UniqueFd(static_cast<int>(
      ::syscall(SYS_open_tree, AT_FDCWD, path.c_str(), flags)));
}

// In a child: what is unmounted here stays where it is elsewhere. 0, or errno.
int OpenInOwnNamespace(const std::string& place, const std::string& source,
                       unsigned flags, UniqueFd* tree) {
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return errno;
  }
  for (int i = 0; i < kMostStacked && IsOwnAndDead(place); ++i) {
    if (::umount2(place.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0) {
      return errno;
    }
  }
  *tree = OpenTree(source, flags);
  return tree->valid() ? 0 : errno;
}

}  // namespace

Result<bool> RemoveDeadMounts(const std::string& mount_point,
                              const std::function<bool()>& stays_shut) {
  const std::string place = PlaceOf(mount_point);
  for (int i = 0; i < kMostStacked && IsOwnAndDead(place); ++i) {
    // Below another of ours, nothing is exposed.
    if (stays_shut() && !LiesOnAnother(place)) {
      if (CanReplace()) return true;
      return Status::SystemSaid(
          EBUSY, "'" + place +
                     "' is a dead mount, and keeps shut what lies below "
                     "(when_full = fail): umount '" +
                     place +
                     "' first, when nobody can work there untraced (root, from "
                     "Linux 6.5 on, takes its place without that)");
    }
    if (const int error = UnmountPath(place, /*lazy=*/true); error != 0) {
      return Status::System(error, "the dead mount at '" + place + "'");
    }
    std::cerr << "tracefs-mount: took away the dead mount at '" << place
              << "'\n";
  }
  return false;
}

Result<UniqueFd> CloneBelowDeadMount(const std::string& mount_point,
                                     const std::string& source,
                                     unsigned flags) {
  const std::string place = PlaceOf(mount_point);
  std::array<int, 2> ends;
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) !=
      0) {
    return Status::System(errno, "source '" + source + "'");
  }
  const UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return Status::System(errno, "source '" + source + "'");
  if (child == 0) {
    UniqueFd tree;
    const int error = OpenInOwnNamespace(place, source, flags, &tree);
    const int file = tree.get();
    static_cast<void>(SendWithFiles(theirs.get(),
                                    std::as_bytes(std::span(&error, 1)),
                                    std::span(&file, error == 0 ? 1 : 0)));
    ::_exit(0);
  }
  theirs.Reset();
  int error = ECHILD;
  std::vector<UniqueFd> files;
  const ssize_t n = ReceiveWithFiles(
      ours.get(), std::as_writable_bytes(std::span(&error, 1)), &files);
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (n == sizeof error && error == 0 && !files.empty()) {
    return std::move(files.front());
  }
  return Status::System(error != 0 ? error : ECHILD,
                        "source '" + source + "' below a dead mount");
}

Result<PlaceAside> PlaceAside::Make() {
  for (const char* const folder : {"/run/tracefs", "/run", "/tmp"}) {
    std::string path = std::string(folder) + "/.tracefs-new-XXXXXX";
    if (::mkdtemp(path.data()) != nullptr) return PlaceAside(std::move(path));
  }
  return Status::System(errno, "a place for the new mount");
}

PlaceAside::PlaceAside(PlaceAside&& other) noexcept
    : path_(std::exchange(other.path_, "")) {}

PlaceAside::~PlaceAside() {
  if (path_.empty()) return;
  ::umount2(path_.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
  ::rmdir(path_.c_str());
}

Status ReplaceDeadMount(const PlaceAside& aside,
                        const std::string& mount_point) {
  const std::string place = PlaceOf(mount_point);
  const auto error = [&place] {
    return Status::System(
        errno, "taking the place of the dead mount at '" + place + "'");
  };
  const Result<MountIdentity> dead = IdentifyMount(place);
  if (!dead.ok()) return dead.status();
  // A mount below one that is shared can only be moved as a copy.
  const UniqueFd copy =
      OpenTree(aside.path(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (!copy) return error();
  mount_attr alone{};
  alone.propagation = MS_PRIVATE;
  if (::mount_setattr(copy.get(), "", AT_EMPTY_PATH, &alone, sizeof alone) !=
          0 ||
      MoveMount(copy.get(), AT_FDCWD, place.c_str(), MOVE_MOUNT_BENEATH) != 0) {
    return error();
  }
  // Neither gets a request: the new one is not served yet.
  const Result<MountIdentity> now = IdentifyMount(place);
  if (now.ok() && now->SocketName() == dead->SocketName() &&
      ::umount2(place.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) != 0) {
    return error();
  }
  std::cerr << "tracefs-mount: took the place of the dead mount at '" << place
            << "'\n";
  return Status::Ok();
}

}  // namespace tracefs
