#include "tracefs/replay/open_beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <charconv>
#include <utility>

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

}  // namespace tracefs::replay
