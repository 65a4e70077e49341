#include "tracefs/base/unique_fd.h"

#include <cerrno>

namespace tracefs {

void UniqueFd::Reset(int fd) {
  const int old = std::exchange(fd_, fd);
  if (old < 0) return;
  const int saved = errno;
  // Linux releases the descriptor even when close() reports EINTR or EIO;
  // those who care about the error close by hand (drivers/output/file).
  ::close(old);
  errno = saved;
}

}  // namespace tracefs
