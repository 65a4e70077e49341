#include "tracefs/base/replacement.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "tracefs/base/durable.h"
#include "tracefs/base/file_io.h"

namespace tracefs {
namespace {

namespace fs = std::filesystem;

// Says of a folder that it was made here.
constexpr char kMark[] = "/.tracefs-export";

std::string TemporaryName(const std::string& path) {
  std::array<unsigned char, 6> random{};
  static_cast<void>(::getrandom(random.data(), random.size(), 0));
  std::string ending = ".part-";
  for (const unsigned char byte : random) {
    ending += "0123456789abcdef"[byte & 15];
  }
  return NameBeside(path, ending);
}

// In a directory where others can write they may have taken the name: for a
// link to a file of ours, a pipe that they read, or a file of theirs, whose
// owner the replacement would get.
Status CheckNotTaken(const struct stat& st, const std::string& path) {
  struct stat folder;
  if (st.st_uid == 0 || st.st_uid == ::geteuid() ||
      ::stat(FolderOfPath(path).c_str(), &folder) != 0 ||
      (folder.st_mode & (S_IWGRP | S_IWOTH)) == 0) {
    return {};
  }
  return Status::Invalid(path + " belongs to user " +
                         std::to_string(st.st_uid) +
                         ", in a directory where others can write; remove it "
                         "or choose another name");
}

// Where a link leads; the path itself if it leads nowhere yet.
Result<std::string> Followed(const std::string& path) {
  constexpr int kMostLinks = 40;  // as the kernel
  std::string at = path;
  while (at.size() > 1 && at.back() == '/') at.pop_back();
  for (int links = 0; links < kMostLinks; ++links) {
    const UniqueFd fd(::open(at.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat st;
    if (!fd || ::fstat(fd.get(), &st) != 0) return path;
    if (Status s = CheckNotTaken(st, at); !s.ok()) return s;
    if (!S_ISLNK(st.st_mode)) return at;
    std::array<char, PATH_MAX> target;
    const ssize_t n = ::readlinkat(fd.get(), "", target.data(), target.size());
    if (n <= 0) return path;
    const std::string to(target.data(), static_cast<size_t>(n));
    at = to.starts_with('/') ? to : FolderOfPath(at) + "/" + to;
  }
  return Status::System(ELOOP, path);
}

Status SyncPath(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  // The umask may have taken the right to read what was made.
  if (!fd && errno == EACCES) return {};
  if (!fd) return Status::System(errno, "cannot open " + path);
  return SyncDescriptor(fd.get(), "cannot write " + path);
}

// A folder with all its contents.
Status SyncAll(const std::string& folder) {
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end;
       !error && at != end; at.increment(error)) {
    if (at->is_symlink(error)) continue;
    if (Status s = SyncPath(at->path()); !s.ok()) return s;
  }
  if (error) return Status::System(error.value(), "cannot read " + folder);
  return SyncPath(folder);
}

}  // namespace

std::string NameBeside(std::string_view path, std::string_view ending) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  const size_t name_at = path.rfind('/') + 1;
  const size_t room = NAME_MAX - ending.size();
  std::string name(path.substr(0, name_at + room));
  return name.append(ending);
}

bool RenameToFree(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(),
                  RENAME_NOREPLACE) == 0) {
    return true;
  }
  if (errno != EINVAL && errno != ENOSYS) return false;
  if (::link(from.c_str(), to.c_str()) != 0) return false;
  ::unlink(from.c_str());
  return true;
}

Result<Replacement> Replacement::Begin(const std::string& path, Kind kind) {
  const Result<std::string> followed = Followed(path);
  if (!followed.ok()) return followed.status();
  const std::string& real = *followed;
  struct stat st = {};
  const bool exists = ::stat(real.c_str(), &st) == 0;
  Replacement made(real, TemporaryName(real), kind);
  if (kind == Kind::kFolder) {
    std::error_code error;
    if (exists && (!S_ISDIR(st.st_mode) ||
                   (!fs::is_empty(real, error) &&
                    ::access((real + kMark).c_str(), F_OK) != 0))) {
      made.done_ = true;
      return Status::Invalid(
          path +
          " is there and was not made by an export: name a new folder, or "
          "remove it first");
    }
    if (::mkdir(made.temporary_.c_str(), 0777) != 0) {
      made.done_ = true;
      return Status::System(errno, "cannot make " + made.temporary_);
    }
    const UniqueFd mark(::open((made.temporary_ + kMark).c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (!mark) return Status::System(errno, "cannot write " + made.temporary_);
    return made;
  }
  if (exists && S_ISDIR(st.st_mode)) {
    made.done_ = true;
    return Status::Invalid(path + " is a folder: name a file");
  }
  if (exists && !S_ISREG(st.st_mode)) {
    made.replaces_ = false;
    made.temporary_ = real;
    made.done_ = true;
    made.fd_.Reset(::open(real.c_str(), O_WRONLY | O_CLOEXEC));
    if (!made.fd_) return Status::System(errno, "cannot open " + path);
    return made;
  }
  // It is no more visible than the file it replaces.
  made.fd_.Reset(::open(made.temporary_.c_str(),
                        O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC,
                        exists ? 0600 : 0666));
  if (!made.fd_) {
    const int error = errno;
    made.done_ = true;
    return Status::System(error, "cannot make " + made.temporary_);
  }
  if (exists) made.replaced_ = st;
  return made;
}

Replacement::Replacement(Replacement&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)),
      kind_(other.kind_),
      fd_(std::move(other.fd_)),
      replaced_(other.replaced_),
      replaces_(other.replaces_),
      done_(std::exchange(other.done_, true)) {}

Replacement::~Replacement() {
  if (done_) return;
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
}

Status Replacement::Commit() {
  if (!replaces_) return {};
  if (kind_ == Kind::kFolder) {
    if (Status s = SyncAll(temporary_); !s.ok()) return s;
  }
  if (kind_ == Kind::kFile) {
    if (replaced_) {
      // The owner first: a change of it takes bits away.
      static_cast<void>(
          ::fchown(fd_.get(), replaced_->st_uid, replaced_->st_gid) == 0);
      static_cast<void>(::fchmod(fd_.get(), replaced_->st_mode & 07777));
    }
    if (Status s = SyncDescriptor(fd_.get(), "cannot write " + path_);
        !s.ok()) {
      return s;
    }
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) {
      return Status::System(errno, "cannot replace " + path_);
    }
    done_ = true;
  } else if (::rename(temporary_.c_str(), path_.c_str()) == 0) {
    done_ = true;
  } else if (errno == ENOTEMPTY || errno == EEXIST) {
    // The old one goes away under the other name.
    if (::renameat2(AT_FDCWD, temporary_.c_str(), AT_FDCWD, path_.c_str(),
                    RENAME_EXCHANGE) != 0) {
      return Status::System(errno, "cannot replace " + path_);
    }
    // Before its files go: until then it may still have the name after a loss
    // of power.
    const Status named = SyncFolderOf(path_);
    std::error_code ignored;
    if (named.ok()) fs::remove_all(temporary_, ignored);
    done_ = true;
    return named;
  } else {
    return Status::System(errno, "cannot replace " + path_);
  }
  return SyncFolderOf(path_);
}

Status ReplaceFile(const std::string& path, std::string_view text) {
  Result<Replacement> file = Replacement::Begin(path, Replacement::Kind::kFile);
  if (!file.ok()) return file.status();
  const Status written =
      WriteAll(file->fd(), AsBytes(text), "cannot write " + path);
  return written.ok() ? file->Commit() : written;
}

}  // namespace tracefs
