#include "tracefs/base/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

bool Same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

Result<std::vector<std::string>> NamesInFolder(int dir) {
  UniqueFd fd(::openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const std::unique_ptr<DIR, int (*)(DIR*)> list(
      fd ? ::fdopendir(fd.get()) : nullptr, &::closedir);
  if (list == nullptr) return Status::System(errno, "a directory");
  (void)fd.Release();
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(list.get())) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  return names;
}

std::optional<bool> IsAbove(int above, int dir) {
  struct stat wanted;
  struct stat now;
  if (::fstatat(above, "", &wanted, AT_EMPTY_PATH) != 0 ||
      ::fstatat(dir, "", &now, AT_EMPTY_PATH) != 0) {
    return std::nullopt;
  }
  UniqueFd here;
  for (int at = dir;; at = here.get()) {
    UniqueFd up(::openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC));
    struct stat next;
    if (!up || ::fstatat(up.get(), "", &next, AT_EMPTY_PATH) != 0) {
      return std::nullopt;
    }
    if (Same(next, now)) return false;  // the root
    if (Same(next, wanted)) return true;
    here = std::move(up);
    now = next;
  }
}

}  // namespace tracefs
