// The descriptors of a handle that are opened when they are needed.
#include <fcntl.h>

#include <cerrno>

#include "tracefs/fs/file_system.h"
#include "tracefs/fs/handle.h"
#include "tracefs/fs/open_flags.h"

namespace tracefs {

int Handle::OpenInto(std::atomic<int>& kept, FileSystem& fs,
                     int our_flags) const {
  if (!share_.Take(uid_)) {
    LostFdError() = EMFILE;
    return -1;
  }
  UniqueFd opened(fs.Reopen(inode, our_flags));
  if (!opened) {
    LostFdError() = errno;
    share_.Give(uid_);
    return -1;
  }
  int expected = -1;
  if (kept.compare_exchange_strong(expected, opened.get())) {
    if (survive::OpenRecord* const record = Record()) {
      (&kept == &fd_ ? record->fd : record->plain_fd).store(opened.get());
    }
    return opened.Release();
  }
  share_.Give(uid_);
  return expected;  // another request was first
}

int Handle::OpenNow(FileSystem& fs) const {
  return OpenInto(fd_, fs, OpenFlags(flags) & ~O_TRUNC);
}

int Handle::BufferedFd(FileSystem& fs) const {
  if (!reads_from_disk()) return Fd(fs);
  int fd = buffered_fd_.load(std::memory_order_acquire);
  if (fd < 0) {
    fd = OpenInto(buffered_fd_, fs, OpenFlags(flags) & ~(O_TRUNC | O_DIRECT));
  }
  if (fd >= 0) return fd;
  // No descriptor can be had, or the file may not be opened any more. Stored
  // data must not be lost: it is better to buffer everything through this one.
  fd = Fd(fs);
  const int now = ::fcntl(fd, F_GETFL);
  if (now >= 0) ::fcntl(fd, F_SETFL, now & ~O_DIRECT);
  return fd;
}

}  // namespace tracefs
