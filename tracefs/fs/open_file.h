// What open, create and tmpfile have in common.
#ifndef TRACEFS_FS_OPEN_FILE_H_
#define TRACEFS_FS_OPEN_FILE_H_

#include <fcntl.h>

#include "tracefs/fs/file_system.h"

namespace tracefs {

// The flags for our own open(2) of what a client opens. O_APPEND is left out:
// fcntl(F_SETFL) can change it unseen, so each write says whether it appends.
inline int OpenFlags(int client_flags) {
  constexpr int kNotOurs = O_APPEND | O_CREAT | O_EXCL | O_NOCTTY | O_NOFOLLOW;
  constexpr int kFmodeExec = 0x20;  // set by the kernel for execve
  return (client_flags & ~(kNotOurs | kFmodeExec)) | O_CLOEXEC;
}

// Decides how the kernel does I/O on this open: through its page cache, or
// each read and write as one request of its own.
void ChooseIoMode(const FileSystem& fs, fuse_file_info* fi);

}  // namespace tracefs

#endif  // TRACEFS_FS_OPEN_FILE_H_
