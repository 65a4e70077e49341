#include "tracefs/base/durable.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

constexpr int kToSync = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

Status SyncOpened(const UniqueFd& folder, std::string_view what) {
  // Who may add names to a folder may not always look at them.
  if (!folder && errno == EACCES) return Status::Ok();
  if (!folder) return Status::System(errno, std::string(what));
  return SyncDescriptor(folder.get(), what);
}

}  // namespace

std::string FolderOfPath(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Status SyncDescriptor(int fd, std::string_view what) {
  if (::fsync(fd) != 0 && errno != EINVAL && errno != ENOSYS) {
    return Status::System(errno, std::string(what));
  }
  return Status::Ok();
}

Status SyncFolder(int folder, std::string_view what) {
  // Neither O_PATH nor a copy of a mount can be synced itself.
  return SyncOpened(UniqueFd(::openat(folder, ".", kToSync)), what);
}

Status SyncFolderOf(const std::string& path) {
  const std::string folder = FolderOfPath(path);
  return SyncOpened(UniqueFd(::open(folder.c_str(), kToSync)),
                    "the folder of " + path);
}

}  // namespace tracefs
