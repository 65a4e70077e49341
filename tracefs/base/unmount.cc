#include "tracefs/base/unmount.h"

#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace tracefs {

int FusermountUnmount(const std::string& path, bool lazy) {
  const pid_t child = ::fork();
  if (child < 0) return errno;
  if (child == 0) {
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    const char* const mode = lazy ? "-uqz" : "-uq";
    ::execl("/usr/bin/fusermount3", "fusermount3", mode, "--", path.c_str(),
            nullptr);
    ::execlp("fusermount3", "fusermount3", mode, "--", path.c_str(), nullptr);
    ::_exit(127);
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return 0;
  // It says why on its standard error only; in use is what it mostly is.
  return WIFEXITED(status) && WEXITSTATUS(status) == 127 ? EPERM : EBUSY;
}

int UnmountPath(const std::string& path, bool lazy) {
  const int flags = (lazy ? MNT_DETACH : 0) | UMOUNT_NOFOLLOW;
  if (::umount2(path.c_str(), flags) == 0) return 0;
  return errno == EPERM ? FusermountUnmount(path, lazy) : errno;
}

}  // namespace tracefs
