#include "tracefs/replay/open_beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <utility>

#include "tracefs/base/printable.h"
#include "tracefs/replay/action.h"

namespace tracefs::replay {

int OpenBeneath(int dir, std::string_view name, int flags, mode_t mode) {
  open_how how{};
  how.flags = static_cast<uint64_t>(static_cast<uint32_t>(flags | O_CLOEXEC));
  if ((flags & O_PATH) != 0) {
    how.flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  }
  if ((flags & (O_CREAT | O_TMPFILE) & ~O_DIRECTORY) != 0) how.mode = mode;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  // Asking for the link itself is not following it.
  if ((flags & O_PATH) == 0) how.resolve |= RESOLVE_NO_SYMLINKS;
  const NameText text(name);
  return static_cast<int>(
      ::syscall(SYS_openat2, dir, text.c_str(), &how, sizeof how));
}

Result<UniqueFd> OpenNamedFolder(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the kernel
  const auto failed = [&path](int error) {
    return Status::System(error, Printable(path));
  };
  std::string left = path;
  int links = 0;
  UniqueFd at(::open(path.starts_with('/') ? "/" : ".",
                     O_PATH | O_DIRECTORY | O_CLOEXEC));
  while (at && !left.empty()) {
    const size_t end = left.find('/');
    const std::string part = left.substr(0, end);
    left.erase(0, end == left.npos ? end : end + 1);
    if (part.empty()) continue;
    UniqueFd next(
        ::openat(at.get(), part.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat st;
    if (!next || ::fstat(next.get(), &st) != 0) return failed(errno);
    if (!S_ISLNK(st.st_mode)) {
      at = std::move(next);
      continue;
    }
    if (st.st_uid != 0 && st.st_uid != ::geteuid()) {
      return Status::Invalid(Printable(path) + ": the link " + Printable(part) +
                             " in it belongs to user " +
                             std::to_string(st.st_uid) +
                             ", who can lead it elsewhere; name the directory "
                             "that it leads to");
    }
    std::array<char, PATH_MAX> target;
    const ssize_t n =
        ::readlinkat(next.get(), "", target.data(), target.size());
    if (n < 0) return failed(errno);
    if (++links > kMostLinks) return failed(ELOOP);
    const std::string to(target.data(), static_cast<size_t>(n));
    left = to + "/" + left;
    if (to.starts_with('/')) {
      at.Reset(::open("/", O_PATH | O_DIRECTORY | O_CLOEXEC));
    }
  }
  struct stat st;
  if (!at || ::fstat(at.get(), &st) != 0) return failed(errno);
  if (path.empty()) return failed(ENOENT);
  if (!S_ISDIR(st.st_mode)) return failed(ENOTDIR);
  return at;
}

UniqueFd OpenParentBeneath(int root, const std::string& path,
                           std::string* name) {
  UniqueFd at(::fcntl(root, F_DUPFD_CLOEXEC, 0));
  size_t begin = 0;
  for (size_t end; at && (end = path.find('/', begin)) != path.npos;
       begin = end + 1) {
    const std::string part = path.substr(begin, end - begin);
    if (!IsSafeName(part)) {
      errno = EINVAL;
      return {};
    }
    UniqueFd next(
        OpenBeneath(at.get(), part, O_PATH | O_DIRECTORY | O_NOFOLLOW));
    at = std::move(next);
  }
  *name = path.substr(begin);
  if (at && !IsSafeName(*name)) {
    errno = EINVAL;
    return {};
  }
  return at;
}

std::string FdPath(int fd) {
  std::array<char, 32> text{};
  constexpr std::string_view kFolder = "/proc/self/fd/";
  kFolder.copy(text.data(), kFolder.size());
  const auto end =
      std::to_chars(text.data() + kFolder.size(), text.data() + text.size(), fd)
          .ptr;
  return {text.data(), end};
}

int ChmodFd(int fd, mode_t mode) {
  struct stat st;
  if (::fstatat(fd, "", &st, AT_EMPTY_PATH) != 0) return -1;
  if (S_ISLNK(st.st_mode)) {
    errno = EOPNOTSUPP;
    return -1;
  }
  return ::chmod(FdPath(fd).c_str(), mode);
}

OwnersRights::OwnersRights(int fd) : fd_(fd) {
  constexpr mode_t kBoth = S_IRUSR | S_IWUSR;
  const int error = errno;
  struct stat st;
  if (::fstatat(fd, "", &st, AT_EMPTY_PATH) == 0 && st.st_uid == ::geteuid() &&
      (st.st_mode & kBoth) != kBoth) {
    mode_ = st.st_mode & 07777;
    taken_ = ChmodFd(fd, mode_ | kBoth) == 0;
  }
  errno = error;
}

OwnersRights::~OwnersRights() {
  if (!taken_) return;
  const int error = errno;
  (void)ChmodFd(fd_, mode_);
  errno = error;
}

int OpenAsOwner(int fd, int flags) {
  const std::string path = FdPath(fd);
  return AsOwner(fd, [&] { return ::open(path.c_str(), flags | O_CLOEXEC); });
}

}  // namespace tracefs::replay
