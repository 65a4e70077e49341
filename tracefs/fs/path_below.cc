#include "tracefs/fs/path_below.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <climits>

#include "tracefs/base/gone_mark.h"

namespace tracefs {

std::string PathBelow(int fd) {
  std::array<char, PATH_MAX> target;
  // The sandbox knows no readlink(2).
  const ssize_t n =
      ::readlinkat(AT_FDCWD, ("/proc/self/fd/" + std::to_string(fd)).c_str(),
                   target.data(), target.size());
  if (n <= 0 || n == static_cast<ssize_t>(target.size())) return {};
  std::string path(target.data(), static_cast<size_t>(n));
  struct stat st;
  if (path.ends_with(kGoneMark) && ::fstatat(fd, "", &st, AT_EMPTY_PATH) == 0 &&
      st.st_nlink == 0) {
    path.resize(path.size() - kGoneMark.size());
  }
  return path;
}

}  // namespace tracefs
