#include "drivers/output/output_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>
#include <string_view>
#include <utility>

#include "tracefs/base/durable.h"
#include "tracefs/base/enclosed_folder.h"
#include "tracefs/base/text.h"

namespace tracefs {

Result<OutputFolder> OutputFolder::Open(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == path.npos ? "." : path.substr(0, slash);
  UniqueFd fd(::open(folder.empty() ? "/" : folder.c_str(),
                     O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return Status::System(errno, "the folder of '" + path + "'");
  Result<OutputFolder> opened = Adopt(path, std::move(fd));
  if (opened.ok()) opened->opened_here_ = true;
  return opened;
}

Result<OutputFolder> OutputFolder::Adopt(const std::string& path,
                                         UniqueFd folder) {
  OutputFolder made;
  const size_t slash = path.rfind('/');
  made.prefix_ = slash == path.npos ? "" : path.substr(0, slash + 1);
  made.base_ = slash == path.npos ? path : path.substr(slash + 1);
  if (made.base_.empty() || made.base_ == "." || made.base_ == "..") {
    return Status::Invalid("'" + path + "' names no file");
  }
  struct stat st;
  if (::fstat(folder.get(), &st) != 0 || !S_ISDIR(st.st_mode)) {
    return Status::Invalid("'" + path +
                           "': the descriptor that was sent is no folder");
  }
  made.fd_ = std::move(folder);
  made.owner_ = ::geteuid();
  made.group_ = ::getegid();
  return made;
}

void OutputFolder::Enclose() {
  // One that was sent to us is enclosed already.
  if (opened_here_) fd_ = EncloseFolder(std::move(fd_));
}

std::string OutputFolder::Numbered(uint64_t number) const {
  char digits[24];
  std::snprintf(digits, sizeof digits, ".%06llu",
                static_cast<unsigned long long>(number));
  return base_ + digits;
}

std::string OutputFolder::What(const std::string& name) const {
  return "trace file '" + PathOf(name) + "'";
}

Status OutputFolder::CannotMake(const std::string& name, int error) const {
  return Status::System(
      error,
      What(name) + (error == EEXIST ? " (a trace never replaces a file; remove "
                                      "it, choose another name, or write %date "
                                      "or %serial into it)"
                                    : ""));
}

Status OutputFolder::CheckMake(const std::string& name) const {
  if (Has(name)) return CannotMake(name, EEXIST);
  return CheckWritable();
}

Status OutputFolder::CheckWritable() const {
  if (::faccessat(fd_.get(), ".", W_OK | X_OK, AT_EACCESS) == 0) {
    return Status::Ok();
  }
  return Status::System(errno, "the folder of '" + PathOf(base_) + "'");
}

Result<UniqueFd> OutputFolder::Make(const std::string& name, int flags,
                                    OutputFileId* id) const {
  const std::string what = What(name);
  UniqueFd fd(::openat(
      fd_.get(), name.c_str(),
      flags | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600));
  if (!fd) return CannotMake(name, errno);
  struct stat st;
  if (::fstat(fd.get(), &st) != 0) return Status::System(errno, what);
  *id = {st.st_dev, st.st_ino};
  // A thread that serves requests has the ids and the umask of some caller.
  if ((st.st_uid != owner_ || st.st_gid != group_) &&
      ::fchown(fd.get(), owner_, group_) != 0) {
    const int error = errno;
    Remove(name, *id);
    return Status::System(error, what + ": owner");
  }
  if ((st.st_mode & 07777) != 0600 && ::fchmod(fd.get(), 0600) != 0) {
    const int error = errno;
    Remove(name, *id);
    return Status::System(error, what + ": mode");
  }
  // What is durable when it is written needs a name that is.
  if ((flags & O_DSYNC) != 0) {
    if (Status s = SyncFolder(fd_.get(), what); !s.ok()) {
      Remove(name, *id);
      return s;
    }
  }
  return fd;
}

UniqueFd OutputFolder::Find(const std::string& name, int flags) const {
  return UniqueFd(
      ::openat(fd_.get(), name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC));
}

std::string OutputFolder::FindNumbered() const {
  const int fd = ::openat(fd_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return Has(Numbered(1)) ? Numbered(1) : "";
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::fdopendir(fd),
                                                   &::closedir);
  while (const dirent* entry = ::readdir(folder.get())) {
    const std::string_view name = entry->d_name;
    constexpr size_t kDigits = 6;
    if (name.size() == base_.size() + 1 + kDigits &&
        name.substr(0, base_.size()) == base_ && name[base_.size()] == '.' &&
        IsMadeOf(name.substr(base_.size() + 1), kDecimalDigits)) {
      return std::string(name);
    }
  }
  return "";
}

bool OutputFolder::Has(const std::string& name) const {
  struct stat st;
  return ::fstatat(fd_.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0;
}

void OutputFolder::Remove(const std::string& name,
                          const OutputFileId& id) const {
  struct stat st;
  if (::fstatat(fd_.get(), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
      OutputFileId{st.st_dev, st.st_ino} == id) {
    static_cast<void>(::unlinkat(fd_.get(), name.c_str(), 0));
  }
}

}  // namespace tracefs
