#include "tracefs/control/place.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <fstream>
#include <set>
#include <sstream>
#include <string_view>

#include "tracefs/base/mount_path.h"
#include "tracefs/base/ownership.h"

namespace tracefs {
namespace {

// The number behind "user_id=" among a mount's options; `none` if absent.
uid_t UserIdOf(std::string_view options, uid_t none) {
  constexpr std::string_view kKey = "user_id=";
  size_t at = options.find(kKey);
  while (at != std::string_view::npos && at != 0 && options[at - 1] != ',') {
    at = options.find(kKey, at + 1);
  }
  if (at == std::string_view::npos) return none;
  uid_t uid = none;
  const char* begin = options.data() + at + kKey.size();
  std::from_chars(begin, options.data() + options.size(), uid);
  return uid;
}

// As /proc/self/mountinfo has it.
std::string DeviceText(const MountIdentity& mount) {
  return std::to_string(mount.major) + ':' + std::to_string(mount.minor);
}

}  // namespace

Result<MountIdentity> IdentifyMount(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!fd) return Status::System(errno, "'" + path + "'");
  // Asked for nothing, the kernel says which device it is without a word to
  // the file system, and to anybody (linux/fs/fuse/dir.c, fuse_getattr).
  struct statx st;
  if (::statx(fd.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &st) != 0) {
    return Status::System(errno, "'" + path + "'");
  }
  MountIdentity mount{st.stx_dev_major, st.stx_dev_minor, 0};
  const std::string device = DeviceText(mount);
  // proc_pid_mountinfo(5): id parent device root point options … - type source
  // super-options
  std::ifstream in("/proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string id, parent, dev, word, type, source, options;
    fields >> id >> parent >> dev;
    if (dev != device) continue;
    while (fields >> word && word != "-") {
    }
    fields >> type >> source >> options;
    if (type != "fuse.tracefs") break;
    mount.owner = UserIdOf(options, 0);
    return mount;
  }
  return Status::Invalid("'" + path +
                         "' is not in a tracefs mount; `findmnt -t "
                         "fuse.tracefs` lists them");
}

std::optional<MountedHere> UppermostAt(const std::string& mount_point) {
  std::optional<MountedHere> found;
  std::ifstream in("/proc/self/mountinfo");
  // proc_pid_mountinfo(5); a later line lies upon those before it.
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string id, parent, device, root, point, word;
    MountedHere one;
    fields >> id >> parent >> device >> root >> point >> one.flags;
    if (UnescapeMountPath(point) != mount_point) continue;
    while (fields >> word && word != "-") {
    }
    std::string source;
    fields >> one.type >> source >> one.options;
    one.source = UnescapeMountPath(source);
    found = std::move(one);
  }
  return found;
}

std::string PlaceOf(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
  const std::string place = fd ? PlaceOf(fd.get()) : "";
  return place.empty() ? path : place;
}

std::string PlaceOf(int fd) {
  std::array<char, PATH_MAX> name;
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  const ssize_t n = ::readlink(link.c_str(), name.data(), name.size());
  return std::string(name.data(), n <= 0 ? 0 : static_cast<size_t>(n));
}

Status CheckNotMountedTwice(const std::string& source,
                            const std::string& mount_point) {
  const std::string place = PlaceOf(mount_point);
  const std::optional<MountedHere> there = UppermostAt(place);
  if (!there || there->type != "fuse.tracefs" ||
      there->source != PlaceOf(source)) {
    return Status::Ok();
  }
  return Status::SystemSaid(
      EBUSY, "'" + source + "' is mounted at '" + place +
                 "' already: tracefs-ctl MNT reload takes another config, add "
                 "one more tracer");
}

std::vector<std::string> MountPointsOf(const MountIdentity& mount) {
  std::vector<std::string> points;
  std::ifstream in("/proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string id, parent, device, root, point;
    fields >> id >> parent >> device >> root >> point;
    if (device == DeviceText(mount)) points.push_back(UnescapeMountPath(point));
  }
  return points;
}

std::vector<std::string> MountsOf(uid_t uid) {
  std::vector<std::string> points;
  std::set<std::string> devices;  // bind mounts are no others
  std::ifstream in("/proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string id, parent, device, root, point, word, type, source, options;
    fields >> id >> parent >> device >> root >> point;
    while (fields >> word && word != "-") {
    }
    fields >> type >> source >> options;
    if (type != "fuse.tracefs") continue;
    if (uid != 0 && UserIdOf(options, 0) != uid) continue;
    if (!devices.insert(device).second) continue;
    points.push_back(UnescapeMountPath(point));
  }
  return points;
}

std::vector<std::string> ControlDirectories(uid_t owner) {
  const std::string number = std::to_string(owner);
  if (owner == 0) return {"/run/tracefs", "/tmp/tracefs-0"};
  return {"/run/user/" + number + "/tracefs", "/tmp/tracefs-" + number};
}

Result<UniqueFd> OpenControlDirectory(const std::string& path, uid_t owner,
                                      bool create) {
  // Clients of root's mounts find the socket there; it refuses them itself.
  const mode_t mode = owner == 0 ? 0755 : 0700;
  if (create && ::mkdir(path.c_str(), mode) == 0) {
    // The umask may have taken something away.
    static_cast<void>(::chmod(path.c_str(), mode));
  } else if (create && errno != EEXIST) {
    return Status::System(errno, "control directory '" + path + "'");
  }
  UniqueFd fd(
      ::open(path.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  const std::string what = "control directory '" + path + "'";
  if (!fd) return Status::System(errno, what);
  const Status ours =
      CheckOwnership(fd.get(), {.type = S_IFDIR, .owner = owner}, what);
  if (!ours.ok()) return Status::SystemSaid(EPERM, ours.message());
  return fd;
}

Result<ControlFolder> OpenControlFolder(
    const std::vector<std::string>& directories, uid_t owner,
    const std::string& mount_point) {
  Status why = Status::Invalid("no directory for the control socket");
  for (const std::string& directory : directories) {
    Result<UniqueFd> opened =
        OpenControlDirectory(directory, owner, /*create=*/true);
    if (!opened.ok()) {
      why = opened.status();
      continue;
    }
    const std::string what = "control directory '" + directory + "'";
    ControlFolder folder{PlaceOf(opened->get()), *std::move(opened)};
    if (IsAtOrBelow(folder.path, mount_point)) {
      why = Status::Invalid(what + " lies where the mount goes");
    } else if (::faccessat(folder.fd.get(), ".", W_OK, AT_EACCESS) != 0) {
      why = Status::System(errno, what);
    } else {
      return folder;
    }
  }
  return why;
}

}  // namespace tracefs
