#include "tracefs/base/writer_lock.h"

#include <fcntl.h>
#include <unistd.h>

namespace tracefs {
namespace {

struct flock WholeFile(short type) {
  struct flock lock = {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

bool LockAsWriter(int fd) {
  struct flock lock = WholeFile(F_WRLCK);
  return ::fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

bool WriterLives(int fd) {
  // Asks only: a lock of ours, even for a moment, could keep a writer out.
  struct flock lock = WholeFile(F_RDLCK);
  return ::fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type == F_WRLCK;
}

}  // namespace tracefs
