#include "tracefs/base/detached_child.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <memory>
#include <unordered_set>
#include <vector>

namespace tracefs {
namespace {

constexpr size_t kMostKept = 6;

// Opened before there was a mount.
int prepared = -1;

// For reading and writing: that of a caller may be for one of them.
bool IsNull(int fd) {
  struct stat st;
  return ::fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) &&
         st.st_rdev == makedev(1, 3) &&
         (::fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR;
}

int OpenNull() { return ::open("/dev/null", O_RDWR | O_CLOEXEC); }

// While a mount that covers /dev is not served yet, whoever looks anything up
// there waits, and the mount may wait for this child. Its own children have
// these files, too, and write to them.
int Null() {
  for (const int fd : {prepared, STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (IsNull(fd)) return fd;
  }
  return OpenNull();
}

void NullStandardFiles() {
  const int null = Null();
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (null < 0) {
      ::close(fd);
    } else if (fd != null) {
      ::dup2(null, fd);
    }
  }
}

}  // namespace

void CloseFilesFrom(unsigned first, std::span<int> kept) {
  std::sort(kept.begin(), kept.end());
  unsigned next = first;
  for (const int fd : kept) {
    const auto own = static_cast<unsigned>(fd);
    if (own > next) ::close_range(next, own - 1, 0);
    next = std::max(next, own + 1);
  }
  ::close_range(next, ~0U, 0);
}

void CloseInheritedFiles(std::span<const int> kept) {
  const std::unique_ptr<DIR, int (*)(DIR*)> files(::opendir("/proc/self/fd"),
                                                  &::closedir);
  if (!files) return;
  const std::unordered_set<int> own(kept.begin(), kept.end());
  std::vector<int> inherited;
  while (const dirent* entry = ::readdir(files.get())) {
    const char* const name = entry->d_name;
    int fd = -1;
    std::from_chars(name, name + std::strlen(name), fd);
    if (fd <= STDERR_FILENO || own.contains(fd)) continue;
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags >= 0 && (flags & FD_CLOEXEC) == 0) inherited.push_back(fd);
  }
  for (const int fd : inherited) ::close(fd);
}

void PrepareToDetach() {
  if (!IsNull(prepared)) prepared = OpenNull();
}

void DetachChild(const char* name, std::initializer_list<int> kept) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::setsid();
  ::prctl(PR_SET_NAME, name, 0, 0, 0);
  NullStandardFiles();
  std::array<int, kMostKept> own{};
  const size_t count = std::min(kept.size(), own.size());
  std::copy_n(kept.begin(), count, own.begin());
  CloseFilesFrom(3, std::span(own).first(count));
  const rlimit none = {0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
}

}  // namespace tracefs
