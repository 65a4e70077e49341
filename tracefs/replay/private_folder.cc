#include "tracefs/replay/private_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <functional>
#include <utility>
#include <vector>

#include "tracefs/base/hex.h"
#include "tracefs/base/printable.h"
#include "tracefs/replay/open_beneath.h"

namespace tracefs::replay {
namespace {

constexpr int kDeepestRemoved = 4096;

// What is in the directory that `fd` is open as, to read.
Result<std::vector<std::string>> NamesIn(int fd) {
  const int again = ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
  DIR* const dir = again < 0 ? nullptr : ::fdopendir(again);
  if (dir == nullptr) {
    const Status failed = Status::System(errno, "a directory");
    if (again >= 0) ::close(again);
    return failed;
  }
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  ::closedir(dir);
  return names;
}

UniqueFd OpenFolder(int dir, std::string_view name) {
  return UniqueFd(OpenBeneath(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
}

Status Clear(UniqueFd fd, dev_t device, int depth) {
  if (depth > kDeepestRemoved) return Status::Corrupt("too deep to be removed");
  const auto names = NamesIn(fd.get());
  if (!names.ok()) return names.status().Prefixed("remove");
  for (const std::string& name : *names) {
    if (depth == 0 && name == "lost+found") continue;
    struct stat st;
    if (::fstatat(fd.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;
    }
    const bool folder = S_ISDIR(st.st_mode) && st.st_dev == device;
    if (folder) {
      if (UniqueFd below = OpenFolder(fd.get(), name)) {
        if (Status s = Clear(std::move(below), device, depth + 1); !s.ok()) {
          return s;
        }
      }
    }
    if (::unlinkat(fd.get(), name.c_str(), folder ? AT_REMOVEDIR : 0) != 0) {
      return Status::System(errno, "remove " + Printable(name));
    }
  }
  return {};
}

bool IsOurs(const struct stat& st) { return st.st_uid == ::geteuid(); }

// Whether a directory from `folder` up lets no other user in.
bool IsShutOff(int folder) {
  UniqueFd at(::fcntl(folder, F_DUPFD_CLOEXEC, 0));
  struct stat last {};
  for (int depth = 0; at && depth < kDeepestRemoved; ++depth) {
    struct stat st;
    if (::fstatat(at.get(), "", &st, AT_EMPTY_PATH) != 0) return false;
    if (IsOurs(st) && (st.st_mode & 077) == 0) return true;
    if (st.st_dev == last.st_dev && st.st_ino == last.st_ino) return false;
    last = st;
    at.Reset(::openat(at.get(), "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  return false;
}

// The first directory that others may change; empty: there is none.
std::string OpenToOthers(UniqueFd fd, const std::string& path, int depth) {
  struct stat st;
  if (depth > kDeepestRemoved || !fd || ::fstat(fd.get(), &st) != 0)
    return path;
  // An ACL that lets others write shows in the bits of the group.
  if (!IsOurs(st) || (st.st_mode & 022) != 0) return path;
  const auto names = NamesIn(fd.get());
  if (!names.ok()) return path;
  for (const std::string& name : *names) {
    struct stat of;
    if (::fstatat(fd.get(), name.c_str(), &of, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISDIR(of.st_mode)) {
      continue;
    }
    std::string open =
        OpenToOthers(OpenFolder(fd.get(), name), path + "/" + name, depth + 1);
    if (!open.empty()) return open;
  }
  return {};
}

}  // namespace

Status ClearTree(int folder) {
  UniqueFd fd = OpenFolder(folder, ".");
  struct stat st;
  if (!fd || ::fstat(fd.get(), &st) != 0) {
    return Status::System(errno, "remove");
  }
  return Clear(std::move(fd), st.st_dev, 0);
}

Result<PrivateFolder> PrivateFolder::Make(int parent, std::string_view prefix) {
  std::array<unsigned char, 16> random;
  if (::getrandom(random.data(), random.size(), 0) !=
      static_cast<ssize_t>(random.size())) {
    return Status::System(errno, "a name for a folder");
  }
  const std::string name =
      std::string(prefix) + Hex(std::as_bytes(std::span(random)));
  PrivateFolder made(UniqueFd(::fcntl(parent, F_DUPFD_CLOEXEC, 0)), name);
  if (::mkdirat(parent, name.c_str(), 0700) != 0) {
    const Status failed = Status::System(errno, "a folder to work in");
    made.Keep();
    return failed;
  }
  // A user who may write to `parent` can exchange it, but not make one that is
  // ours.
  made.fd_.Reset(OpenBeneath(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW));
  if (!made.fd_ && errno != ENOENT && errno != ENOTDIR && errno != ELOOP) {
    const Status failed = Status::System(errno, "a folder to work in");
    ::unlinkat(parent, name.c_str(), AT_REMOVEDIR);
    return failed;
  }
  struct stat st;
  const bool ours = made.fd_ &&
                    ::fstatat(made.fd(), "", &st, AT_EMPTY_PATH) == 0 &&
                    IsOurs(st) && (st.st_mode & 0777) == 0700;
  const Result<bool> empty =
      ours ? IsEmptyFolder(made.fd()) : Result<bool>(false);
  if (!empty.ok()) return empty.status();
  if (!*empty) {
    made.fd_.Reset();
    made.Keep();
    return Status::Invalid(
        "somebody exchanged the folder to work in; choose a directory that "
        "nobody else may write to");
  }
  return made;
}

PrivateFolder::~PrivateFolder() {
  (void)Remove();  // what is left is in a folder for such things
}

Status PrivateFolder::Remove() {
  if (!parent_ || !fd_) return {};
  const UniqueFd parent = std::move(parent_);
  if (Status s = ClearTree(fd()); !s.ok()) return s.Prefixed(name_);
  if (::unlinkat(parent.get(), name_.c_str(), AT_REMOVEDIR) == 0) return {};
  return Status::System(errno, "remove " + name_);
}

Result<bool> IsEmptyFolder(int folder) {
  const UniqueFd fd = OpenFolder(folder, ".");
  if (!fd) return Status::System(errno, "--root");
  const auto names = NamesIn(fd.get());
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    if (name != "lost+found") return false;
  }
  return true;
}

Status CheckNobodyElse(int folder, bool makes_foreign) {
  if (IsShutOff(folder)) return {};
  const std::string open =
      makes_foreign ? "." : OpenToOthers(OpenFolder(folder, "."), ".", 0);
  if (open.empty()) return {};
  return Status::Invalid(
      (makes_foreign ? "files are given away in it (--users recorded)"
                     : "others can change " + Printable(open) + " in it") +
      " while this works: keep them out, by chmod 700 of it or of a directory "
      "that it is in, or run this as its owner");
}

}  // namespace tracefs::replay
