#include "drivers/output/remote/dialer.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <cerrno>
#include <span>
#include <vector>

#include "drivers/output/remote/connect.h"
#include "tracefs/base/passed_files.h"

namespace tracefs {
namespace {

constexpr int kAnswerMs = 20'000;

struct Answer {
  uint32_t request = 0;
  int32_t error = 0;
  std::array<char, 240> text{};  // ends with a zero byte
};

class DirectDialer final : public Dialer {
 public:
  explicit DirectDialer(net::Address address) : address_(std::move(address)) {}
  Result<UniqueFd> Dial(int cancel) override {
    return ConnectTo(address_, cancel);
  }

 private:
  const net::Address address_;
};

// --- The process.

// Apart from the daemon and its terminal, with as little power as will do.
void Isolate(int socket) {
  sigset_t all;
  ::sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
  ::setsid();
  ::prctl(PR_SET_NAME, "tracefs-dial", 0, 0, 0);
  (void)!::chdir("/");
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (null >= 0) {
      ::dup2(null, fd);
    } else {
      ::close(fd);
    }
  }
  const auto kept = static_cast<unsigned>(socket);
  if (kept > 3) ::close_range(3, kept - 1, 0);
  ::close_range(kept + 1, ~0U, 0);
  const rlimit none = {0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
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

[[noreturn]] void RunProcess(UniqueFd socket, const net::Address& address) {
  Isolate(socket.get());
  for (;;) {
    Answer answer;
    ssize_t n;
    do {
      n = ::recv(socket.get(), &answer.request, sizeof answer.request, 0);
    } while (n < 0 && errno == EINTR);
    if (n != sizeof answer.request) ::_exit(0);
    // What the daemon says meanwhile, its end included, ends the attempt.
    const Result<UniqueFd> fd = ConnectTo(address, socket.get());
    if (!fd.ok()) {
      answer.error = fd.status().error();
      fd.status().message().copy(answer.text.data(), answer.text.size() - 1);
    }
    const int file = fd.ok() ? fd->get() : -1;
    static_cast<void>(SendWithFiles(socket.get(),
                                    std::as_bytes(std::span(&answer, 1)),
                                    std::span(&file, fd.ok() ? 1 : 0)));
  }
}

// --- The daemon's side.

// In a sandbox, for instance.
Status NoProcess(const net::Address& address, int error) {
  return Status::System(
      error, address.Text() +
                 ": no process can be made that connects to it; add this "
                 "output with the tracefs-ctl of the mount's own version");
}

class ProcessDialer final : public Dialer {
 public:
  // The process ends when it sees that we are gone.
  explicit ProcessDialer(UniqueFd socket) : socket_(std::move(socket)) {}

  Result<UniqueFd> Dial(int cancel) override {
    const uint32_t request = ++requests_;
    if (::send(socket_.get(), &request, sizeof request, MSG_NOSIGNAL) < 0) {
      return Gone();
    }
    for (;;) {
      std::array<pollfd, 2> ready = {pollfd{socket_.get(), POLLIN, 0},
                                     pollfd{cancel, POLLIN, 0}};
      const int n = ::poll(ready.data(), ready.size(), kAnswerMs);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0)
        return Status::System(n < 0 ? errno : ETIMEDOUT, "connecting");
      if (ready[1].revents != 0) return Status::System(ECANCELED, "connecting");
      Answer answer;
      std::vector<UniqueFd> files;
      if (ReceiveWithFiles(socket_.get(),
                           std::as_writable_bytes(std::span(&answer, 1)),
                           &files) != sizeof answer) {
        return Gone();
      }
      answer.text.back() = '\0';
      // An attempt that was given up earlier.
      if (answer.request != request) continue;
      if (answer.error != 0) {
        return Status::SystemSaid(answer.error, answer.text.data());
      }
      if (files.empty()) return Status::System(EMFILE, "connecting");
      return std::move(files.front());
    }
  }

 private:
  static Status Gone() {
    return Status::System(EPIPE, "the process that makes connections is gone");
  }

  const UniqueFd socket_;
  uint32_t requests_ = 0;
};

}  // namespace

std::unique_ptr<Dialer> MakeDirectDialer(net::Address address) {
  return std::make_unique<DirectDialer>(std::move(address));
}

std::unique_ptr<Dialer> MakeProcessDialer(UniqueFd socket) {
  return std::make_unique<ProcessDialer>(std::move(socket));
}

Result<std::unique_ptr<Dialer>> StartDialerProcess(net::Address address) {
  Result<UniqueFd> socket = ForkDialer(address);
  if (!socket.ok()) return socket.status();
  return MakeProcessDialer(*std::move(socket));
}

Result<UniqueFd> ForkDialer(const net::Address& address) {
  std::array<int, 2> ends;
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) !=
      0) {
    return NoProcess(address, errno);
  }
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) {
    return NoProcess(address, errno);
  }
  if (child == 0) {
    ours.Reset();
    // A grandchild, which nobody has to wait for at its end: it may be busy
    // resolving a name then, and a daemon in its sandbox cannot kill it.
    if (::fork() == 0) RunProcess(std::move(theirs), address);
    ::_exit(0);
  }
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return ours;
}

}  // namespace tracefs
