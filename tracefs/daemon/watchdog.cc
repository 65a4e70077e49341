// The daemon's side of the watchdog (watchdog.h).
#include "tracefs/daemon/watchdog.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "tracefs/base/clock.h"
#include "tracefs/base/detached_child.h"
#include "tracefs/base/passed_files.h"
#include "tracefs/daemon/watchdog_process.h"

namespace tracefs {
namespace {

bool IsGone(const Status& status) {
  return status.error() == EPIPE || status.error() == ECONNRESET;
}

}  // namespace

Result<std::unique_ptr<Watchdog>> Watchdog::Start(
    const WatchdogOptions& options) {
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
  PrepareToDetach();
  const pid_t child = ::fork();
  if (child < 0) return Status::System(errno, "watchdog process");
  if (child == 0) {
    ours.Reset();
    KeepWatchdog(std::move(theirs), std::move(self), ::getppid(), options);
  }
  std::unique_ptr<Watchdog> watchdog(new Watchdog(child, std::move(ours)));
  theirs.Reset();
  if (watchdog->link_->Await() == nullptr) {
    return Status::System(ECHILD, "watchdog process");
  }
  return watchdog;
}

std::unique_ptr<Watchdog> Watchdog::Adopt(pid_t keeper, UniqueFd socket,
                                          UniqueFd helper) {
  std::unique_ptr<Watchdog> watchdog(new Watchdog(keeper, std::move(socket)));
  if (helper) watchdog->link_->Put(std::move(helper));
  return watchdog;
}

Watchdog::~Watchdog() {
  static_cast<void>(
      Ask(static_cast<char>(WatchdogRequest::kGoodbye), "", nullptr));
  // It sees the end of the conversation, cleans up and ends, as does one that
  // has just taken its place.
  link_.reset();
  while (::waitpid(keeper_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Status Watchdog::Ask(char request, const std::string& text, UniqueFd* fd) {
  std::vector<UniqueFd> files;
  Status status = Ask(request, text, &files, nullptr);
  if (fd != nullptr && !files.empty()) *fd = std::move(files.front());
  return status;
}

Status Watchdog::Ask(char request, const std::string& text,
                     std::vector<UniqueFd>* files, std::string* said) {
  if (text.size() >= PATH_MAX) return Status::System(ENAMETOOLONG, "watchdog");
  const std::lock_guard lock(mu_);
  const std::string question = request + text;
  Status status = AskOnce(question, files, said);
  // It died over this, or before: another may be there, and knows what it was
  // told.
  if (IsGone(status)) status = AskOnce(question, files, said);
  return status;
}

Status Watchdog::AskOnce(const std::string& question,
                         std::vector<UniqueFd>* files, std::string* said) {
  const HelperLink::Socket socket = link_->Await();
  if (socket == nullptr ||
      SendWithFiles(socket->get(), AsBytes(question), {}) < 0) {
    return Status::System(EPIPE, "the watchdog is gone");
  }
  int error = 0;
  std::array<char, sizeof error + kMaxWatchdogText> answer;
  const ssize_t n = ReceiveWithFiles(
      socket->get(), std::as_writable_bytes(std::span(answer)), files);
  if (n < static_cast<ssize_t>(sizeof error)) {
    return Status::System(n < 0 ? errno : EPIPE, "the watchdog is gone");
  }
  std::memcpy(&error, answer.data(), sizeof error);
  std::string told(answer.data() + sizeof error,
                   static_cast<size_t>(n) - sizeof error);
  if (error != 0 && !told.empty()) {
    return Status::SystemSaid(error, std::move(told));
  }
  if (said != nullptr) *said = std::move(told);
  if (error == 0) return Status::Ok();
  return Status::System(
      error, question.size() > 1 ? question.substr(1) : "unmounting");
}

Result<UniqueFd> Watchdog::ConnectLog() {
  UniqueFd fd;
  Status status = Ask(static_cast<char>(WatchdogRequest::kConnectLog), "", &fd);
  if (!status.ok()) return status;
  if (!fd) return Status::System(EMFILE, "log socket");
  return fd;
}

Result<tracefs::OpenTracepoints> Watchdog::OpenTracepoints(TracepointUse use,
                                                           int processor) {
  tracefs::OpenTracepoints opened;
  Status status = Ask(static_cast<char>(WatchdogRequest::kTracepoints),
                      static_cast<char>(use) + std::to_string(processor),
                      &opened.files, &opened.layout);
  if (!status.ok()) return status;
  if (opened.files.empty()) return Status::System(EMFILE, "tracepoints");
  return opened;
}

Status Watchdog::TakeOver() {
  constexpr int kMostLeft = 8;
  const std::lock_guard lock(mu_);
  const HelperLink::Socket socket = link_->Await();
  const std::string word = std::to_string(MonotonicNs());
  const std::string question = static_cast<char>(WatchdogRequest::kEcho) + word;
  if (socket == nullptr ||
      SendWithFiles(socket->get(), AsBytes(question), {}) < 0) {
    return Status::System(EPIPE, "the watchdog is gone");
  }
  for (int i = 0; i < kMostLeft; ++i) {
    std::vector<UniqueFd> files;
    std::array<char, sizeof(int) + kMaxWatchdogText> answer;
    const ssize_t n = ReceiveWithFiles(
        socket->get(), std::as_writable_bytes(std::span(answer)), &files);
    if (n < static_cast<ssize_t>(sizeof(int))) break;
    if (std::string_view(answer.data(), static_cast<size_t>(n))
            .substr(sizeof(int)) == word) {
      return Status::Ok();
    }
  }
  return Status::System(EPIPE, "the watchdog is gone");
}

Result<UniqueFd> Watchdog::StartLooker() {
  UniqueFd fd;
  Status status = Ask(static_cast<char>(WatchdogRequest::kLook), "", &fd);
  if (!status.ok()) return status;
  if (!fd) return Status::System(EMFILE, "looker");
  return fd;
}

Status Watchdog::Reload() {
  return Ask(static_cast<char>(WatchdogRequest::kReload), "", nullptr);
}

Status Watchdog::Guard(const std::string& mount_point) {
  return Ask(static_cast<char>(WatchdogRequest::kGuard), mount_point, nullptr);
}

Status Watchdog::StayShut() {
  return Ask(static_cast<char>(WatchdogRequest::kStayShut), "", nullptr);
}

Status Watchdog::Unmount(bool lazy) {
  const auto request =
      lazy ? WatchdogRequest::kUnmountLazy : WatchdogRequest::kUnmount;
  Status status = Ask(static_cast<char>(request), "", nullptr);
  if (!IsGone(status)) return status;
  return Status::SystemSaid(
      EPIPE,
      "the process that unmounts (tracefs-watch) is gone; tracefs-ctl or "
      "umount(8) ends the mount and its traces without it");
}

}  // namespace tracefs
