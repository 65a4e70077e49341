#include "drivers/output/remote/helper_process.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <span>

#include "tracefs/base/detached_child.h"
#include "tracefs/base/helper_keeper.h"
#include "tracefs/base/passed_files.h"

namespace tracefs {
namespace {

// Apart from the daemon and its terminal, with as little power as will do.
void Isolate(const char* name, int socket) {
  DetachChild(name, {socket});
  (void)!::chdir("/");
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  // Sockets of other users are within root's reach, nothing else is.
  constexpr uint32_t kKept = 1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH;
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> sets{};
  if (::syscall(SYS_capget, &header, sets.data()) != 0) return;
  for (size_t i = 0; i < sets.size(); ++i) {
    const uint32_t kept_of = i == 0 ? kKept : 0;
    sets[i].permitted &= kept_of;
    sets[i].effective &= kept_of;
    sets[i].inheritable = 0;
  }
  ::syscall(SYS_capset, &header, sets.data());
}

// In a sandbox, for instance.
Status NoProcess(const std::string& what, int error) {
  return Status::System(
      error, what +
                 ": no process can be made that connects to it; add this "
                 "output with the tracefs-ctl of the mount's own version");
}

}  // namespace

Result<UniqueFd> ForkHelper(const char* name, const std::string& what,
                            const std::function<void(UniqueFd)>& run) {
  std::array<int, 2> ends;
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) !=
      0) {
    return NoProcess(what, errno);
  }
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) {
    return NoProcess(what, errno);
  }
  if (child == 0) {
    ours.Reset();
    // A grandchild, which nobody has to wait for at its end: its helper may be
    // busy resolving a name then, and a daemon in its sandbox cannot kill it.
    if (::fork() == 0) {
      Isolate(name, theirs.get());
      KeepHelper(std::move(theirs), KeeperEnd::kWithDaemon,
                 [&](UniqueFd socket) {
                   Isolate(name, socket.get());
                   run(std::move(socket));
                 });
    }
    ::_exit(0);
  }
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return ours;
}

bool TakeDial(int socket, uint32_t* request) {
  ssize_t n;
  do {
    // Its whole length, and none of the descriptors that came with it.
    n = ::recv(socket, request, sizeof *request, MSG_TRUNC);
  } while (n < 0 && errno == EINTR);
  return n == sizeof *request;
}

void AnswerDial(int socket, uint32_t request, const Result<UniqueFd>& fd) {
  DialAnswer answer;
  answer.request = request;
  if (!fd.ok()) {
    answer.error = fd.status().error();
    fd.status().message().copy(answer.text.data(), answer.text.size() - 1);
  }
  const int file = fd.ok() ? fd->get() : -1;
  static_cast<void>(SendWithFiles(socket, std::as_bytes(std::span(&answer, 1)),
                                  std::span(&file, fd.ok() ? 1 : 0)));
}

}  // namespace tracefs
