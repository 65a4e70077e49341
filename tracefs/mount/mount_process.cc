#include "tracefs/mount/mount_process.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <iostream>
#include <memory>

#include "tracefs/base/join.h"
#include "tracefs/base/text.h"
#include "tracefs/command/front.h"
#include "tracefs/mount/run.h"

namespace tracefs {
namespace {

[[noreturn]] void ServeMount(const MountOptions& options, ProcessFeed& feed,
                             int words, int ready) {
  ::setsid();
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  ::dup2(null.get(), STDIN_FILENO);
  ::dup2(null.get(), STDOUT_FILENO);
  ::dup2(words, STDERR_FILENO);
  feed.BecomeReceiver();
  int exit_status = 3;
  const Result<std::unique_ptr<Log>> log = Log::Open(options.log, true);
  if (!log.ok()) {
    std::cerr << log.status().message() << '\n';
  } else {
    const Status status = Run(
        options, **log,
        [&] {
          const char byte = 1;
          return ::write(ready, &byte, 1) == 1
                     ? Status::Ok()
                     : Status::System(errno, "telling that it is mounted");
        },
        &feed);
    if (!status.ok()) std::cerr << status.message() << '\n';
    exit_status = status.ok() ? 0 : ExitStatus(status);
  }
  std::cerr.flush();
  ::_exit(exit_status);
}

}  // namespace

Result<MountProcess> MountProcess::Start(const MountOptions& options,
                                         ProcessFeed& feed) {
  UniqueFd words(::memfd_create("tracefs-run", MFD_CLOEXEC));
  if (!words) return Status::System(errno, "memfd_create");
  ::fcntl(words.get(), F_SETFL, O_APPEND);
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return Status::System(errno, "pipe");
  }
  const UniqueFd from(ends[0]);
  UniqueFd to(ends[1]);
  const pid_t pid = ::fork();
  if (pid < 0) return Status::System(errno, "fork");
  if (pid == 0) ServeMount(options, feed, words.get(), to.get());
  to.Reset();
  MountProcess mount(pid, std::move(words));
  char byte = 0;
  ssize_t n;
  do {
    n = ::read(from.get(), &byte, 1);
  } while (n < 0 && errno == EINTR);
  if (n == 1) return mount;
  const int exit_status = mount.Wait();
  const std::string said = mount.Words();
  std::string why;
  for (std::string_view rest = Trim(said); !rest.empty();) {
    AppendWord(Trim(TakeUpTo(rest, '\n')), "; ", &why);
  }
  if (exit_status == 2) return Status::Invalid(why);
  return Status::SystemSaid(EIO, why.empty() ? "the mount failed" : why);
}

std::string MountProcess::Words() const {
  std::string text(size_t{64} << 10, '\0');
  const ssize_t n = ::pread(words_.get(), text.data(), text.size(), 0);
  text.resize(n < 0 ? 0 : static_cast<size_t>(n));
  return text;
}

int MountProcess::Wait() const {
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 3;
}

}  // namespace tracefs
