// BackingFiles: files registered with the FUSE connection, so that the kernel
// reads and writes them without the daemon (linux/fs/fuse/backing.c, since
// 6.9).
#pragma once

#include <cstdint>

namespace tracefs {

// Threads: any, once SetDevice was called.
class BackingFiles {
 public:
  // The descriptor of the connection; outlives this.
  void SetDevice(int fd) { device_ = fd; }

  // Registers the file behind `fd` (O_PATH is enough) with the credentials of
  // the calling thread, which should lack CAP_FSETID: all I/O on it is done
  // with them. The id, above 0, or 0 and errno.
  int32_t Open(int fd) const;
  void Close(int32_t id) const;

 private:
  int device_ = -1;
};

}  // namespace tracefs
