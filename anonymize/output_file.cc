#include "anonymize/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace tracefs::anonymize {
namespace {

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

constexpr mode_t kMode = 0644;  // before the umask: it is meant to be shared

}  // namespace

Result<OutputFile> OutputFile::Create(const std::string& path) {
  OutputFile file;
  file.path_ = path;
  if (file.to_stdout()) {
    file.done_ = true;
    file.fd_.Reset(::dup(STDOUT_FILENO));
    if (!file.fd_) return Status::System(errno, "standard output");
    return file;
  }
  if (::faccessat(AT_FDCWD, path.c_str(), F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
    return Status::Invalid(path +
                           " exists and is not replaced; remove it or choose "
                           "another name");
  }
  file.fd_.Reset(
      ::open(FolderOf(path).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, kMode));
  if (file.fd_) return file;
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) {
    return Status::System(errno, path);
  }
  file.temporary_ = path + ".XXXXXX";
  file.fd_.Reset(::mkostemp(file.temporary_.data(), O_CLOEXEC));
  if (!file.fd_) {
    file.temporary_.clear();
    return Status::System(errno, path);
  }
  const mode_t mask = ::umask(0);
  ::umask(mask);
  (void)::fchmod(file.fd_.get(), kMode & ~mask);  // a mode apart is no failure
  return file;
}

OutputFile::~OutputFile() {
  if (!done_ && !temporary_.empty()) ::unlink(temporary_.c_str());
}

Status OutputFile::Write(ByteSpan bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      return Status::System(errno, to_stdout() ? "standard output" : path_);
    }
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return Status::Ok();
}

Status OutputFile::Commit() {
  if (to_stdout()) return Status::Ok();
  if (::fsync(fd_.get()) != 0) return Status::System(errno, path_);
  // link(2) and not rename(2): it fails where a file has appeared meanwhile.
  const std::string from = temporary_.empty()
                               ? "/proc/self/fd/" + std::to_string(fd_.get())
                               : temporary_;
  if (::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, path_.c_str(),
               temporary_.empty() ? AT_SYMLINK_FOLLOW : 0) != 0) {
    return Status::System(errno, path_);
  }
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  done_ = true;
  return Status::Ok();
}

}  // namespace tracefs::anonymize
