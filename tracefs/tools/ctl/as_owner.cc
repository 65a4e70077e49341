#include "tracefs/tools/ctl/as_owner.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

namespace tracefs {
namespace {

// All capabilities go with the user ids (capabilities(7)), and only root can
// inspect the process from then on: it is no longer dumpable.
Status Become(const MountIdentity& mount) {
  const passwd* const user = ::getpwuid(mount.owner);
  const gid_t group = user != nullptr ? user->pw_gid : mount.group;
  const int groups = user != nullptr ? ::initgroups(user->pw_name, group)
                                     : ::setgroups(0, nullptr);
  if (groups != 0 || ::setresgid(group, group, group) != 0 ||
      ::setresuid(mount.owner, mount.owner, mount.owner) != 0) {
    return Status::System(errno,
                          "becoming user " + std::to_string(mount.owner));
  }
  return Status::Ok();
}

}  // namespace

bool IsForeign(const MountIdentity& mount) {
  return ::geteuid() == 0 && mount.owner != 0;
}

Result<int> AsOwner(const MountIdentity& mount, const std::function<int()>& act,
                    const std::atomic<bool>& stop) {
  const pid_t child = ::fork();
  if (child < 0) return Status::System(errno, "fork");
  if (child == 0) {
    const Status became = Become(mount);
    if (became.ok()) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);
      ::_exit(act());
    }
    std::fprintf(stderr, "%s\n", became.message().c_str());
    ::_exit(ExitStatus(became));
  }
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return Status::System(errno, "waiting");
    if (stop.load()) ::kill(child, SIGTERM);
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return Status::SystemSaid(
      EINTR, "what acts as user " + std::to_string(mount.owner) +
                 " was ended by signal " + std::to_string(WTERMSIG(status)));
}

}  // namespace tracefs
