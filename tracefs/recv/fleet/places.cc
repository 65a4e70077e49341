#include "tracefs/recv/fleet/places.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "tracefs/base/bytes.h"
#include "tracefs/base/durable.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/folder.h"

namespace tracefs {

Result<UniqueFd> OpenOrMakeFolder(int parent, const std::string& name) {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  const std::string what = "folder '" + name + "'";
  UniqueFd folder(::openat(parent, name.c_str(), kFlags));
  if (!folder && errno == ENOENT) {
    if (::mkdirat(parent, name.c_str(), 0700) != 0 && errno != EEXIST) {
      return Status::System(errno, what);
    }
    folder.Reset(::openat(parent, name.c_str(), kFlags));
  }
  if (!folder) return Status::System(errno, what);
  // Also if it was there: who made it may not have come to this.
  if (Status s = SyncFolder(parent, what); !s.ok()) return s;
  return folder;
}

std::vector<std::string> NamesIn(int directory, std::string_view prefix) {
  Result<std::vector<std::string>> names = NamesInFolder(directory);
  if (!names.ok()) return {};
  std::erase_if(*names, [prefix](const std::string& name) {
    return !name.starts_with(prefix);
  });
  return *std::move(names);
}

void RemoveFolder(int parent, const std::string& name) {
  const UniqueFd folder(::openat(
      parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder) return;
  for (const std::string& file : NamesIn(folder.get(), "")) {
    ::unlinkat(folder.get(), file.c_str(), 0);
  }
  ::unlinkat(parent, name.c_str(), AT_REMOVEDIR);
}

Result<HostFolder> HostFolder::Open(int root, const std::string& host) {
  HostFolder made;
  Result<UniqueFd> folder =
      OpenOrMakeFolder(root, std::string(kHostPrefix) + host);
  if (!folder.ok()) return folder.status();
  made.folder_ = *std::move(folder);
  made.lock_.Reset(::openat(made.fd(), ".lock",
                            O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!made.lock_) return Status::System(errno, "lock of host '" + host + "'");
  return made;
}

HostFolder::Lock::Lock(const HostFolder& folder) : fd_(folder.lock_.get()) {
  while (::flock(fd_, LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    status_ = Status::System(errno, "locking the folder of a host");
    return;
  }
}

HostFolder::Lock::~Lock() { ::flock(fd_, LOCK_UN); }

Status PutInPlace(int directory, int fd, const std::string& temporary,
                  const std::string& name) {
  if (::fsync(fd) != 0 ||
      ::renameat(directory, temporary.c_str(), directory, name.c_str()) != 0 ||
      ::fsync(directory) != 0) {
    const int error = errno;
    ::unlinkat(directory, temporary.c_str(), 0);
    return Status::System(error, "'" + name + "'");
  }
  return Status::Ok();
}

std::string TemporaryNameOf(std::string_view name) {
  return std::string(kTemporaryPrefix) + std::string(name) + ".part";
}

Status WriteFileWhole(int directory, const std::string& name,
                      std::string_view bytes) {
  const std::string temporary = TemporaryNameOf(name);
  const UniqueFd fd(
      ::openat(directory, temporary.c_str(),
               O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return Status::System(errno, "'" + name + "'");
  if (Status s = WriteAllAt(fd.get(), AsBytes(bytes), 0, "'" + name + "'");
      !s.ok()) {
    ::unlinkat(directory, temporary.c_str(), 0);
    return s;
  }
  return PutInPlace(directory, fd.get(), temporary, name);
}

}  // namespace tracefs
