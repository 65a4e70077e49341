#include "tests/unit/recv/failing_sync.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace tracefs::test {

std::atomic<int> failing_syncs = 0;

namespace {

bool Fails() {
  if (failing_syncs.load() <= 0) return false;
  --failing_syncs;
  errno = EIO;
  return true;
}

}  // namespace
}  // namespace tracefs::test

// In place of libc's.
extern "C" int fdatasync(int fd) {
  if (tracefs::test::Fails()) return -1;
  return static_cast<int>(::syscall(SYS_fdatasync, fd));
}
extern "C" int syncfs(int fd) noexcept {
  if (tracefs::test::Fails()) return -1;
  return static_cast<int>(::syscall(SYS_syncfs, fd));
}
