// The flags of our own open(2) of what a client opens.
#pragma once

#include <fcntl.h>

namespace tracefs {

// __FMODE_EXEC: set by the kernel for execve(2); open(2) refuses it.
inline constexpr int kFmodeExec = 0x20;

// `client_flags` without what the kernel has done already. O_APPEND is left
// out: fcntl(F_SETFL) can change it unseen, so each write says whether it
// appends.
inline int OpenFlags(int client_flags) {
  constexpr int kNotOurs = O_APPEND | O_CREAT | O_EXCL | O_NOCTTY | O_NOFOLLOW;
  return (client_flags & ~(kNotOurs | kFmodeExec)) | O_CLOEXEC;
}

}  // namespace tracefs
