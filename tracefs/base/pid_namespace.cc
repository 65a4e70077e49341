#include "tracefs/base/pid_namespace.h"

#include <sys/stat.h>

#include <cerrno>

namespace tracefs {

bool InInitialPidNamespace(const char* path) {
  constexpr ino_t kInitialPid = 0xeffffffc;
  struct stat st;
  if (::stat(path, &st) != 0) return errno == ENOENT;
  return st.st_ino == kInitialPid;
}

}  // namespace tracefs
