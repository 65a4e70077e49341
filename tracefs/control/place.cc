#include "tracefs/control/place.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <system_error>

#include "tracefs/base/mount_path.h"
#include "tracefs/base/ownership.h"

namespace tracefs {
namespace {

// The number after "user_id=" (`key`) among a mount's options; 0 if absent.
uint32_t IdOf(std::string_view options, std::string_view key) {
  size_t at = options.find(key);
  while (at != std::string_view::npos && at != 0 && options[at - 1] != ',') {
    at = options.find(key, at + 1);
  }
  if (at == std::string_view::npos) return 0;
  uint32_t id = 0;
  const char* begin = options.data() + at + key.size();
  std::from_chars(begin, options.data() + options.size(), id);
  return id;
}

// $XDG_RUNTIME_DIR, if it is what the XDG Base Directory Specification says it
// must be: of this user, who alone may go there.
std::string RuntimeDirectory() {
  const char* const path = ::secure_getenv("XDG_RUNTIME_DIR");
  if (path == nullptr || path[0] != '/') return "";
  const UniqueFd fd(
      ::open(path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat st;
  if (!fd || ::fstat(fd.get(), &st) != 0 || st.st_uid != ::geteuid() ||
      (st.st_mode & 077) != 0) {
    return "";
  }
  return path;
}

std::string NameBelowTmp(uid_t owner) {
  return "tracefs-" + std::to_string(owner);
}

// /tmp/tracefs-UID-…; those of others by the same name are not among them.
std::vector<std::string> SpareDirectories(uid_t owner) {
  constexpr size_t kMost = 64;
  std::vector<std::string> found;
  const std::string front = NameBelowTmp(owner) + '-';
  std::error_code error;
  for (std::filesystem::directory_iterator at("/tmp", error), end;
       !error && at != end && found.size() < kMost; at.increment(error)) {
    struct stat st;
    if (at->path().filename().string().starts_with(front) &&
        ::lstat(at->path().c_str(), &st) == 0 && S_ISDIR(st.st_mode) &&
        st.st_uid == owner) {
      found.push_back(at->path());
    }
  }
  std::ranges::sort(found);
  return found;
}

// As /proc/self/mountinfo has it.
std::string DeviceText(const MountIdentity& mount) {
  return std::to_string(mount.major) + ':' + std::to_string(mount.minor);
}

}  // namespace

Result<MountIdentity> IdentifyMount(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!fd) return Status::System(errno, "'" + path + "'");
  // Asked for no attributes, the kernel tells anybody the device without a
  // request to the file system (linux/fs/fuse/dir.c, fuse_getattr).
  struct statx st;
  if (::statx(fd.get(), "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, 0, &st) != 0) {
    return Status::System(errno, "'" + path + "'");
  }
  MountIdentity mount{st.stx_dev_major, st.stx_dev_minor};
  const std::string device = DeviceText(mount);
  for (const MountLine& line : MountTable()) {
    if (line.device != device) continue;
    if (line.type != kMountType) break;
    mount.owner = IdOf(line.options, "user_id=");
    mount.group = IdOf(line.options, "group_id=");
    return mount;
  }
  return Status::Invalid("'" + path +
                         "' is not in a tracefs mount; `findmnt -t "
                         "fuse.tracefs` lists them");
}

std::optional<MountLine> UppermostAt(const std::string& mount_point) {
  std::optional<MountLine> found;
  for (MountLine& line : MountTable()) {
    if (line.point == mount_point) found = std::move(line);
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
  const std::optional<MountLine> there = UppermostAt(place);
  if (!there || there->type != kMountType || there->source != PlaceOf(source)) {
    return Status::Ok();
  }
  return Status::SystemSaid(
      EBUSY, "'" + source + "' is mounted at '" + place +
                 "' already: tracefs-ctl MNT reload takes another config, add "
                 "one more tracer");
}

std::vector<std::string> MountPointsOf(const MountIdentity& mount) {
  std::vector<std::string> points;
  for (MountLine& line : MountTable()) {
    if (line.device == DeviceText(mount)) {
      points.push_back(std::move(line.point));
    }
  }
  return points;
}

std::vector<std::string> MountsOf(std::optional<uid_t> uid) {
  std::vector<std::string> points;
  std::set<std::string> devices;  // bind mounts are no others
  for (MountLine& line : MountTable()) {
    if (line.type != kMountType) continue;
    if (uid && IdOf(line.options, "user_id=") != *uid) continue;
    if (!devices.insert(line.device).second) continue;
    points.push_back(std::move(line.point));
  }
  return points;
}

std::vector<std::string> ControlDirectories(uid_t owner) {
  const std::string below_tmp = "/tmp/" + NameBelowTmp(owner);
  if (owner == 0) return {"/run/tracefs", below_tmp};
  const std::string usual = "/run/user/" + std::to_string(owner) + "/tracefs";
  std::vector<std::string> all;
  if (owner == ::geteuid()) {
    const std::string own = RuntimeDirectory();
    if (!own.empty() && own + "/tracefs" != usual) {
      all.push_back(own + "/tracefs");
    }
  }
  all.push_back(usual);
  all.push_back(below_tmp);
  return all;
}

std::vector<std::string> EveryControlDirectory(uid_t owner) {
  std::vector<std::string> all = ControlDirectories(owner);
  for (std::string& spare : SpareDirectories(owner)) {
    all.push_back(std::move(spare));
  }
  return all;
}

Result<UniqueFd> OpenControlDirectory(const std::string& path, uid_t owner,
                                      bool create) {
  // Clients of root's mounts find the socket there; it refuses them itself.
  const mode_t mode = owner == 0 ? 0755 : 0700;
  if (create && ::mkdir(path.c_str(), mode) == 0) {
    // The umask may have removed bits.
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

Result<ControlFolder> OpenOwnControlFolder(const std::string& mount_point) {
  const uid_t me = ::geteuid();
  Result<ControlFolder> folder =
      OpenControlFolder(EveryControlDirectory(me), me, mount_point);
  if (folder.ok() || IsAtOrBelow("/tmp", mount_point)) return folder;
  std::string path = "/tmp/" + NameBelowTmp(me) + "-XXXXXX";
  if (::mkdtemp(path.data()) == nullptr) return folder.status();
  return OpenControlFolder({path}, me, mount_point);
}

}  // namespace tracefs
