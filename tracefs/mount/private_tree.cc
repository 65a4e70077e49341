// user_namespaces(7), mount_namespaces(7), pivot_root(2).
#include "tracefs/mount/private_tree.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

Status WriteFile(const char* path, const std::string& text) {
  const UniqueFd fd(::open(path, O_WRONLY | O_CLOEXEC));
  if (!fd || ::write(fd.get(), text.data(), text.size()) !=
                 static_cast<ssize_t>(text.size())) {
    return Status::System(errno, path);
  }
  return Status::Ok();
}

Status EnterUserNamespace() {
  const std::string uid = std::to_string(::geteuid());
  const std::string gid = std::to_string(::getegid());
  if (::unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) {
    return Status::System(
        errno,
        "a mount namespace of its own: ordinary users need user namespaces, "
        "which this system does not allow here (see sysctl "
        "user.max_user_namespaces, kernel.unprivileged_userns_clone and "
        "kernel.apparmor_restrict_unprivileged_userns, and in a container its "
        "seccomp profile); run it as root instead");
  }
  if (Status s = WriteFile("/proc/self/setgroups", "deny"); !s.ok()) return s;
  if (Status s = WriteFile("/proc/self/uid_map", uid + ' ' + uid + " 1");
      !s.ok()) {
    return s;
  }
  return WriteFile("/proc/self/gid_map", gid + ' ' + gid + " 1");
}

}  // namespace

Status EnterPrivateMounts() {
  if (::unshare(CLONE_NEWNS) != 0) {
    if (errno != EPERM) {
      return Status::System(errno, "a mount namespace of its own");
    }
    if (Status s = EnterUserNamespace(); !s.ok()) return s;
  }
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_SLAVE, nullptr) != 0) {
    return Status::System(errno, "keeping mounts private");
  }
  return Status::Ok();
}

Status MakeRoot(const std::string& mount_point) {
  if (::unshare(CLONE_NEWNS) != 0 ||
      ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return Status::System(errno, "mounts of the new root");
  }
  for (const char* kept : {"/proc", "/sys", "/dev", "/run"}) {
    struct stat st;
    if (::stat(kept, &st) != 0 || !S_ISDIR(st.st_mode)) continue;
    const std::string to = mount_point + kept;
    if (::mount(kept, to.c_str(), nullptr, MS_BIND | MS_REC, nullptr) != 0) {
      return Status::System(errno, std::string(kept) + " of the new root");
    }
  }
  // As in pivot_root(2), 'pivot_root(".", ".")'.
  if (::chdir(mount_point.c_str()) != 0 ||
      ::syscall(SYS_pivot_root, ".", ".") != 0 ||
      ::umount2(".", MNT_DETACH) != 0 || ::chdir("/") != 0) {
    return Status::System(errno, "changing the root");
  }
  return Status::Ok();
}

}  // namespace tracefs
