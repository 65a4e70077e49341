#include "tracefs/tools/replay/clear_tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "tracefs/base/printable.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/replay/open_beneath.h"

namespace tracefs {
namespace {

constexpr int kDeepest = 4096;

Status Clear(UniqueFd fd, dev_t device, int depth) {
  if (depth > kDeepest) return Status::Corrupt("too deep to be removed");
  DIR* const dir = ::fdopendir(fd.get());
  if (dir == nullptr) return Status::System(errno, "remove");
  const int at = fd.Release();
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && (depth > 0 || name != "lost+found")) {
      names.emplace_back(name);
    }
  }
  Status status;
  for (const std::string& name : names) {
    struct stat st;
    if (::fstatat(at, name.c_str(), &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const bool folder = S_ISDIR(st.st_mode) && st.st_dev == device;
    if (folder) {
      UniqueFd below(
          replay::OpenBeneath(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
      if (below) status = Clear(std::move(below), device, depth + 1);
    }
    if (status.ok() &&
        ::unlinkat(at, name.c_str(), folder ? AT_REMOVEDIR : 0) != 0) {
      status = Status::System(errno, "remove " + Printable(name));
    }
    if (!status.ok()) break;
  }
  ::closedir(dir);
  return status;
}

}  // namespace

Status ClearTree(const std::string& folder) {
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat st;
  if (!fd || ::fstat(fd.get(), &st) != 0) {
    return Status::System(errno, Printable(folder));
  }
  return Clear(std::move(fd), st.st_dev, 0);
}

}  // namespace tracefs
