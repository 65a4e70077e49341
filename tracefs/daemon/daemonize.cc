#include "tracefs/daemon/daemonize.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <iostream>

#include "tracefs/base/unique_fd.h"

namespace tracefs {
namespace {

// Waits for the word of the child: a byte when it is ready, the end of the pipe
// when it is not going to be.
int WaitForChild(pid_t child, int pipe_end) {
  char byte;
  ssize_t n;
  do {
    n = ::read(pipe_end, &byte, 1);
  } while (n < 0 && errno == EINTR);
  if (n == 1) return 0;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  std::fprintf(stderr, "tracefs-mount: died of signal %d\n", WTERMSIG(status));
  return 3;
}

Status Detach(const UniqueFd& pipe_end, const UniqueFd& null) {
  const char byte = 1;
  if (::write(pipe_end.get(), &byte, 1) != 1) {
    return Status::System(errno, "telling that the mount is ready");
  }
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    ::dup2(null.get(), fd);
  }
  return Status::Ok();
}

}  // namespace

int Daemonize(
    const std::function<int(const std::function<Status()>& ready)>& body) {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    std::cerr << "tracefs-mount: " << Status::System(errno, "pipe").message()
              << '\n';
    return 3;
  }
  UniqueFd from_child(ends[0]);
  UniqueFd to_parent(ends[1]);
  std::cout.flush();
  const pid_t child = ::fork();
  if (child < 0) {
    std::cerr << "tracefs-mount: " << Status::System(errno, "fork").message()
              << '\n';
    return 3;
  }
  if (child != 0) {
    to_parent.Reset();
    return WaitForChild(child, from_child.get());
  }
  from_child.Reset();
  ::setsid();
  // Now: once in its sandbox the daemon does not find it any more.
  UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null) {
    std::cerr << "tracefs-mount: "
              << Status::System(errno, "/dev/null").message() << '\n';
    return 3;
  }
  return body([&] {
    const Status status = Detach(to_parent, null);
    null.Reset();
    to_parent.Reset();
    return status;
  });
}

}  // namespace tracefs
