#include "tracefs/tools/anon/output_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>

#include "tracefs/base/durable.h"
#include "tracefs/base/file_io.h"
#include "tracefs/base/replacement.h"

namespace tracefs::anonymize {
namespace {

constexpr mode_t kMode = 0644;  // before the umask: it is meant to be shared

// --- A name that must not outlive the process.

constexpr std::array kEnds = {SIGHUP, SIGINT, SIGTERM};
std::array<char, PATH_MAX> g_name;
std::atomic<bool> g_named{false};

void RemoveAndEnd(int signal_number) {
  if (g_named) ::unlink(g_name.data());
  ::signal(signal_number, SIG_DFL);
  ::raise(signal_number);
}

// Has the file removed if the process is asked to end. One name at a time.
void RemoveAtEnd(const std::string& path) {
  if (path.size() >= g_name.size() || g_named) return;
  std::copy_n(path.c_str(), path.size() + 1, g_name.begin());
  g_named = true;
  for (const int signal_number : kEnds) {
    // nohup and shells have it ignored.
    if (::signal(signal_number, &RemoveAndEnd) == SIG_IGN) {
      ::signal(signal_number, SIG_IGN);
    }
  }
}

void KeepAtEnd(const std::string& path) {
  if (g_named && path == g_name.data()) g_named = false;
}

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
  file.fd_.Reset(::open(FolderOfPath(path).c_str(),
                        O_TMPFILE | O_WRONLY | O_CLOEXEC, kMode));
  if (file.fd_) return file;
  if (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL) {
    return Status::System(errno, path);
  }
  file.temporary_ = NameBeside(path, ".XXXXXX");
  file.fd_.Reset(::mkostemp(file.temporary_.data(), O_CLOEXEC));
  if (!file.fd_) {
    file.temporary_.clear();
    return Status::System(errno, path);
  }
  RemoveAtEnd(file.temporary_);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  (void)::fchmod(file.fd_.get(), kMode & ~mask);  // another mode will do
  return file;
}

OutputFile::~OutputFile() {
  if (done_ || temporary_.empty()) return;
  ::unlink(temporary_.c_str());
  KeepAtEnd(temporary_);
}

Status OutputFile::Write(ByteSpan bytes) {
  return WriteAll(fd_.get(), bytes,
                  to_stdout() ? std::string_view("standard output") : path_);
}

Status OutputFile::Commit() {
  if (to_stdout()) return Status::Ok();
  if (::fsync(fd_.get()) != 0) return Status::System(errno, path_);
  // None of the two replaces a file that has appeared meanwhile.
  const bool named =
      temporary_.empty()
          ? ::linkat(AT_FDCWD,
                     ("/proc/self/fd/" + std::to_string(fd_.get())).c_str(),
                     AT_FDCWD, path_.c_str(), AT_SYMLINK_FOLLOW) == 0
          : RenameToFree(temporary_, path_);
  if (!named) return Status::System(errno, path_);
  KeepAtEnd(temporary_);
  done_ = true;
  return SyncFolderOf(path_);
}

}  // namespace tracefs::anonymize
