#include "tracefs/base/helper_keeper.h"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <span>

#include "tracefs/base/clock.h"
#include "tracefs/base/passed_files.h"

namespace tracefs {
namespace {

constexpr int kMsBetweenHelpers = 1000;

// The process of a helper whose other end the daemon has, or -1.
pid_t StartOne(UniqueFd& daemon, const std::function<void(UniqueFd)>& helper) {
  std::array<int, 2> ends;
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) !=
      0) {
    return -1;
  }
  UniqueFd own(ends[0]);
  UniqueFd theirs(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    daemon.Reset();
    theirs.Reset();
    helper(std::move(own));
    ::_exit(0);
  }
  if (child > 0) {
    const std::byte one{};
    const int file = theirs.get();
    // The helper notices by itself when the daemon is gone.
    static_cast<void>(SendWithFiles(daemon.get(), std::span(&one, 1),
                                    std::span(&file, 1), MSG_DONTWAIT));
  }
  return child;
}

bool EndedByItself(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return true;
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace

void KeepHelper(UniqueFd daemon, KeeperEnd end,
                const std::function<void(UniqueFd)>& helper) {
  ::prctl(PR_SET_NAME, "tracefs-keep", 0, 0, 0);
  // Before there was a helper there is nothing that it would have to end.
  bool with_daemon = true;
  for (;;) {
    const uint64_t began = MonotonicNs();
    const pid_t child = StartOne(daemon, helper);
    if (child > 0) with_daemon = end == KeeperEnd::kWithDaemon;
    if (child > 0 && EndedByItself(child)) ::_exit(0);
    const auto passed =
        static_cast<int64_t>((MonotonicNs() - began) / kNsPerMs);
    if (passed >= kMsBetweenHelpers) continue;
    // It only looks for a hang-up.
    pollfd gone = {with_daemon ? daemon.get() : -1, 0, 0};
    if (::poll(&gone, 1, kMsBetweenHelpers - static_cast<int>(passed)) > 0) {
      ::_exit(0);
    }
  }
}

}  // namespace tracefs
