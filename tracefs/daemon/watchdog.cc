// The daemon's side of the watchdog (watchdog.h).
#include "tracefs/daemon/watchdog.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <span>
#include <vector>

#include "tracefs/base/passed_files.h"
#include "tracefs/daemon/watchdog_process.h"

namespace tracefs {

Result<std::unique_ptr<Watchdog>> Watchdog::Start() {
  std::array<int, 2> ends;
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) !=
      0) {
    return Status::System(errno, "watchdog socket");
  }
  UniqueFd ours(ends[0]);
  UniqueFd theirs(ends[1]);
  // Opened here, so that it means this process whatever happens next.
  UniqueFd self(
      static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), /*flags=*/0)));
  if (!self) return Status::System(errno, "watchdog: pidfd_open");
  const pid_t child = ::fork();
  if (child < 0) return Status::System(errno, "watchdog process");
  if (child == 0) {
    ours.Reset();
    RunWatchdog(std::move(theirs), std::move(self));
  }
  return std::unique_ptr<Watchdog>(new Watchdog(child, std::move(ours)));
}

Watchdog::~Watchdog() {
  static_cast<void>(
      Ask(static_cast<char>(WatchdogRequest::kGoodbye), "", nullptr));
  // The child sees the end of the conversation, cleans up and ends.
  ::shutdown(socket_.get(), SHUT_RDWR);
  while (::waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Status Watchdog::Ask(char request, const std::string& text, UniqueFd* fd) {
  if (text.size() >= PATH_MAX) return Status::System(ENAMETOOLONG, "watchdog");
  const std::lock_guard lock(mu_);
  const std::string question = request + text;
  if (SendWithFiles(socket_.get(), AsBytes(question), {}) < 0) {
    return Status::System(errno, "the watchdog is gone");
  }

  int error = 0;
  std::vector<UniqueFd> files;
  const ssize_t n = ReceiveWithFiles(
      socket_.get(), std::as_writable_bytes(std::span(&error, 1)), &files);
  if (n != sizeof error) {
    return Status::System(n < 0 ? errno : EPIPE, "the watchdog is gone");
  }
  if (fd != nullptr && !files.empty()) *fd = std::move(files.front());
  if (error == 0) return Status::Ok();
  return Status::System(error, text.empty() ? "unmounting" : text);
}

Status Watchdog::AllowFilesBelow(const std::string& directory) {
  return Ask(static_cast<char>(WatchdogRequest::kAllow), directory, nullptr);
}

Status Watchdog::UseLog(const LogPlace& place) {
  if (place.path.empty()) return Status::Ok();
  return Ask(static_cast<char>(WatchdogRequest::kLog),
             static_cast<char>(place.kind) + place.path, nullptr);
}

Result<UniqueFd> Watchdog::ConnectLog() {
  UniqueFd fd;
  Status status = Ask(static_cast<char>(WatchdogRequest::kConnectLog), "", &fd);
  if (!status.ok()) return status;
  if (!fd) return Status::System(EMFILE, "log socket");
  return fd;
}

Status Watchdog::Guard(const std::string& mount_point) {
  return Ask(static_cast<char>(WatchdogRequest::kGuard), mount_point, nullptr);
}

Status Watchdog::Unmount(bool lazy) {
  const auto request =
      lazy ? WatchdogRequest::kUnmountLazy : WatchdogRequest::kUnmount;
  return Ask(static_cast<char>(request), "", nullptr);
}

Result<UniqueFd> Watchdog::MakeFile(const std::string& path) {
  UniqueFd fd;
  Status status = Ask(static_cast<char>(WatchdogRequest::kMakeFile), path, &fd);
  if (!status.ok()) return status;
  if (!fd) return Status::System(EMFILE, path);
  return fd;
}

}  // namespace tracefs
