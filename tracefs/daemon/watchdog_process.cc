// What the watchdog does (watchdog_process.h). One thread; nothing here waits
// for the file system that it guards.
#include "tracefs/daemon/watchdog_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <csignal>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tracefs/base/detached_child.h"
#include "tracefs/base/helper_keeper.h"
#include "tracefs/base/log_socket.h"
#include "tracefs/base/passed_files.h"
#include "tracefs/base/printable.h"
#include "tracefs/base/unmount.h"
#include "tracefs/daemon/capabilities.h"
#include "tracefs/daemon/log.h"
#include "tracefs/daemon/looker.h"
#include "tracefs/daemon/mount_info.h"
#include "tracefs/daemon/tracepoints.h"
#include "tracefs/daemon/watch_notes.h"

namespace tracefs {
namespace {

// Relative to the directory in which it was found: nobody can bend the way
// there any more. 0, or an errno.
int UnmountPlace(const MountPlace& place, int flags) {
  int error = 0;
  if (::fchdir(place.parent.get()) != 0 ||
      ::umount2(place.name.c_str(), flags | UMOUNT_NOFOLLOW) != 0) {
    error = errno;
  }
  (void)!::chdir("/");
  return error;
}

class WatchdogChild {
 public:
  WatchdogChild(UniqueFd socket, const WatchedDaemon& daemon,
                const WatchdogOptions& options)
      : socket_(std::move(socket)),
        daemon_(daemon.pid),
        notes_(daemon.notes),
        options_(options) {
    if (notes_ != nullptr) noted_ = notes_->Take();
  }

  int socket() const { return socket_.get(); }
  // Readable when the reload that runs has ended; -1 while there is none.
  int reload() const { return reload_.get(); }
  // Answers what has arrived; false when the daemon has hung up.
  bool AnswerOne();
  void OnReloadEnd();
  // Removes what is guarded, and bind mounts of it, unless it stays shut.
  void CleanUp();
  // Says in the log that the daemon is gone, unless it has said so itself.
  void TellEnd() const;
  bool goodbye() const { return noted_.goodbye; }

 private:
  struct Answer {
    int error = 0;
    UniqueFd fd;
    std::vector<UniqueFd> more = {};  // besides `fd`
    std::string text = {};
  };

  Answer Handle(WatchdogRequest request, const std::string& text);
  Answer HandleBare(WatchdogRequest request);
  int Guard(const std::string& path);
  int Unmount(bool lazy);
  Answer Connect() const;
  Answer OpenPoints(const std::string& text) const;
  Answer StartLooker();
  int Reload();
  void RunReload() const;
  void Send(const Answer& answer) const;
  bool IsThere() const { return noted_.guards && IsStillThere(noted_.place); }
  void Note(bool* what);

  const UniqueFd socket_;
  const pid_t daemon_;
  WatchNotes* const notes_;  // may be null
  WatchNote noted_;
  const WatchdogOptions options_;
  UniqueFd reload_;  // pidfd
  pid_t reload_pid_ = -1;
  bool reload_again_ = false;
  std::vector<pid_t> lookers_;
};

void WatchdogChild::Note(bool* what) {
  if (std::exchange(*what, true) || notes_ == nullptr) return;
  notes_->Leave(noted_);
}

int WatchdogChild::Guard(const std::string& path) {
  if (noted_.guards) return EALREADY;
  std::optional<MountPlace> place = FindMount(path);
  if (!place) return errno;
  if (!place->mounted) return EINVAL;
  noted_.path = path;
  noted_.place = *std::move(place);
  Note(&noted_.guards);
  return 0;
}

int WatchdogChild::Unmount(bool lazy) {
  if (!noted_.guards) return EINVAL;
  if (!IsThere()) return 0;
  const int error = UnmountPlace(noted_.place, lazy ? MNT_DETACH : 0);
  return error == EPERM ? FusermountUnmount(noted_.path, lazy) : error;
}

// The daemon chooses no path after kGuard, and one of the processors that there
// are.
WatchdogChild::Answer WatchdogChild::Handle(WatchdogRequest request,
                                            const std::string& text) {
  if (request == WatchdogRequest::kGuard) return {Guard(text), {}};
  if (request == WatchdogRequest::kTracepoints) return OpenPoints(text);
  if (request == WatchdogRequest::kEcho) return {0, {}, {}, text};
  if (!text.empty()) return {EINVAL, {}};
  return HandleBare(request);
}

WatchdogChild::Answer WatchdogChild::HandleBare(WatchdogRequest request) {
  switch (request) {
    case WatchdogRequest::kGuard:
    case WatchdogRequest::kTracepoints:
    case WatchdogRequest::kEcho:
      break;
    case WatchdogRequest::kUnmount:
      return {Unmount(/*lazy=*/false), {}};
    case WatchdogRequest::kUnmountLazy:
      return {Unmount(/*lazy=*/true), {}};
    case WatchdogRequest::kStayShut:
      Note(&noted_.stays_shut);
      return {};
    case WatchdogRequest::kConnectLog:
      return Connect();
    case WatchdogRequest::kLook:
      return StartLooker();
    case WatchdogRequest::kReload:
      return {Reload(), {}};
    case WatchdogRequest::kGoodbye:
      Note(&noted_.goodbye);
      return {};
  }
  return {EINVAL, {}};
}

WatchdogChild::Answer WatchdogChild::Connect() const {
  if (options_.log.path.empty()) return {ENOENT, {}};
  Result<UniqueFd> fd = ConnectLog(options_.log.path);
  if (!fd.ok()) return {fd.status().error(), {}};
  return {0, *std::move(fd)};
}

WatchdogChild::Answer WatchdogChild::OpenPoints(const std::string& text) const {
  int processor = -1;
  const char* const end = text.data() + text.size();
  if (text.size() < 2 ||
      std::from_chars(text.data() + 1, end, processor).ptr != end ||
      processor < 0) {
    return {EINVAL, {}};
  }
  if (processor >= ::sysconf(_SC_NPROCESSORS_CONF)) return {ENODEV, {}};
  const auto use = static_cast<TracepointUse>(text[0]);
  if (use != TracepointUse::kCalls && use != TracepointUse::kProcesses) {
    return {EINVAL, {}};
  }
  Result<OpenTracepoints> opened = OpenTracepointsOn(use, processor, daemon_);
  if (!opened.ok()) {
    return {opened.status().error(), {}, {}, opened.status().message()};
  }
  return {0, {}, std::move(opened->files), std::move(opened->layout)};
}

WatchdogChild::Answer WatchdogChild::StartLooker() {
  std::erase_if(lookers_, [](pid_t looker) {
    return ::waitpid(looker, nullptr, WNOHANG) != 0;
  });
  if (lookers_.size() >= kMostLookers) return {EAGAIN, {}};
  std::array<int, 2> ends;
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) !=
      0) {
    return {errno, {}};
  }
  UniqueFd theirs(ends[0]);
  UniqueFd own(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) return {errno, {}};
  if (child == 0) {
    ::dup2(own.get(), STDIN_FILENO);
    ::close_range(STDERR_FILENO + 1, ~0U, 0);
    RunLooker(UniqueFd(STDIN_FILENO));
  }
  lookers_.push_back(child);
  return {0, std::move(theirs)};
}

int WatchdogChild::Reload() {
  if (!noted_.guards || options_.reload_program.empty()) return EINVAL;
  if (reload_) {
    reload_again_ = true;
    return 0;
  }
  // Not waited for: the daemon asks us things while it reloads its config.
  const pid_t child = ::fork();
  if (child < 0) return errno;
  if (child == 0) {
    // Else the daemon would not see our end while this one goes on.
    CloseFilesFrom(STDERR_FILENO + 1, {});
    RunReload();
    ::_exit(0);
  }
  reload_pid_ = child;
  reload_.Reset(
      static_cast<int>(::syscall(SYS_pidfd_open, child, /*flags=*/0)));
  if (!reload_) OnReloadEnd();
  return 0;
}

void WatchdogChild::OnReloadEnd() {
  while (::waitpid(reload_pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  reload_.Reset();
  if (std::exchange(reload_again_, false)) static_cast<void>(Reload());
}

// Runs it, and tells what it said if it failed.
void WatchdogChild::RunReload() const {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
  const pid_t child = ::fork();
  if (child < 0) return;
  if (child == 0) {
    sigset_t none;
    ::sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::dup2(ends[1], STDERR_FILENO);
    ::close_range(STDERR_FILENO + 1, ~0U, CLOSE_RANGE_CLOEXEC);
    const std::string& program = options_.reload_program;
    const std::string& config = options_.reload_config;
    ::execl(program.c_str(), "tracefs-ctl", noted_.path.c_str(), "reload",
            config.empty() ? nullptr : config.c_str(), nullptr);
    const std::string why =
        "'" + program + "' cannot be run: " + std::strerror(errno);
    (void)!::write(STDERR_FILENO, why.data(), why.size());
    ::_exit(3);
  }
  ::close(ends[1]);
  std::string said(kMaxWatchdogText, '\0');
  size_t size = 0;
  for (ssize_t n = 1; n > 0 && size < said.size();) {
    n = ::read(ends[0], said.data() + size, said.size() - size);
    if (n > 0) size += static_cast<size_t>(n);
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if ((WIFEXITED(status) && WEXITSTATUS(status) == 0) ||
      options_.log.path.empty()) {
    return;
  }
  said.resize(size);
  const Result<UniqueFd> fd = ConnectLog(options_.log.path);
  if (!fd.ok()) return;
  static_cast<void>(SendLog(
      fd->get(),
      LogDatagram(options_.log.kind, NoticeId::kReloadFailed, noted_.path,
                  "the config was not reloaded: " + Printable(said))));
}

void WatchdogChild::TellEnd() const {
  if (!noted_.guards || options_.log.path.empty()) return;
  const bool shut = noted_.stays_shut && IsThere();
  if (noted_.goodbye && !shut) return;
  const Result<UniqueFd> fd = ConnectLog(options_.log.path);
  if (!fd.ok()) return;
  static_cast<void>(SendLog(
      fd->get(),
      LogDatagram(
          options_.log.kind, NoticeId::kDied, noted_.path,
          "the daemon (process " + std::to_string(daemon_) + ") " +
              (noted_.goodbye ? "has ended, its connection was cut" : "died") +
              (shut ? ": the mount stays shut until root unmounts it"
                    : ": the mount was taken away") +
              (noted_.goodbye ? "" : ", and its traces lack their end"))));
}

void WatchdogChild::Send(const Answer& answer) const {
  std::vector<int> files;
  if (answer.fd) files.push_back(answer.fd.get());
  for (const UniqueFd& file : answer.more) files.push_back(file.get());
  std::string bytes(sizeof answer.error, '\0');
  std::memcpy(bytes.data(), &answer.error, sizeof answer.error);
  bytes += answer.text.substr(0, kMaxWatchdogText);
  static_cast<void>(SendWithFiles(socket_.get(), AsBytes(bytes), files));
}

bool WatchdogChild::AnswerOne() {
  std::array<char, 1 + PATH_MAX> question;
  ssize_t n;
  do {
    // Its whole length, and none of the descriptors that came with it.
    n = ::recv(socket_.get(), question.data(), question.size(), MSG_TRUNC);
  } while (n < 0 && errno == EINTR);
  if (n <= 0) return false;
  if (n > static_cast<ssize_t>(question.size())) {
    Send({EINVAL, {}});
    return true;
  }
  const std::string text(question.data() + 1, static_cast<size_t>(n) - 1);
  // No name holds a zero byte; a system call would see another one.
  if (text.find('\0') != std::string::npos) {
    Send({EINVAL, {}});
  } else {
    Send(Handle(static_cast<WatchdogRequest>(question[0]), text));
  }
  return true;
}

void WatchdogChild::CleanUp() {
  if (noted_.stays_shut || !IsThere()) return;
  // Bind mounts of it are as dead. While it is there, nothing else can have
  // its device number; afterwards anything may.
  const std::vector<std::string> paths = MountsOfDevice(noted_.place.device);
  for (const std::string& path : paths) {
    const std::optional<MountPlace> place = FindMount(path);
    if (place && place->device == noted_.place.device &&
        place->id != noted_.place.id) {
      UnmountPlace(*place, MNT_DETACH);
    }
  }
  static_cast<void>(Unmount(/*lazy=*/true));
}

// Whether somebody has the other end; not if this is -1.
bool IsThereStill(int socket) {
  constexpr int kMsForAllToClose = 200;
  if (socket < 0) return false;
  pollfd gone = {socket, 0, 0};
  return ::poll(&gone, 1, kMsForAllToClose) == 0;
}

// Apart from the daemon and its terminal, with as little power as will do.
void Isolate(int socket, const WatchedDaemon& daemon) {
  const int all = daemon.all >= 0 ? daemon.all : socket;
  if (daemon.notes != nullptr) {
    DetachChild("tracefs-watch",
                {socket, daemon.pidfd, all, daemon.notes->reading(),
                 daemon.notes->writing()});
  } else {
    DetachChild("tracefs-watch", {socket, daemon.pidfd, all});
  }
  (void)!::chdir("/");
  ::umask(0077);
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  if (HasCapability(CAP_SYS_ADMIN)) {
    // Reaching mount point and outputs, and umount2; a looker keeps
    // CAP_SYS_PTRACE. An ordinary user's
    // watchdog runs fusermount3, which needs its set-user-id bit.
    ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    (void)LimitCapabilities(
        CapabilityBit(CAP_SYS_ADMIN) | CapabilityBit(CAP_DAC_OVERRIDE) |
        CapabilityBit(CAP_DAC_READ_SEARCH) | CapabilityBit(CAP_SYS_PTRACE));
  }
}

}  // namespace

void KeepWatchdog(UniqueFd keeper, UniqueFd daemon, pid_t pid,
                  const WatchdogOptions& options) {
  Result<WatchNotes> notes = WatchNotes::Make();
  if (!notes.ok()) ::_exit(1);
  const UniqueFd all(
      options.survives ? ::fcntl(keeper.get(), F_DUPFD_CLOEXEC, 0) : -1);
  const WatchedDaemon watched = {
      .pid = pid, .pidfd = daemon.get(), .notes = &*notes, .all = all.get()};
  Isolate(keeper.get(), watched);
  // Without one a daemon that dies would leave its mount.
  KeepHelper(std::move(keeper), KeeperEnd::kWithoutHelp, [&](UniqueFd socket) {
    RunWatchdog(std::move(socket), watched, options);
  });
}

void RunWatchdog(UniqueFd socket, const WatchedDaemon& daemon,
                 const WatchdogOptions& options) {
  Isolate(socket.get(), daemon);
  WatchdogChild child(std::move(socket), daemon, options);
  const int peer = child.socket();
  for (bool talking = true;;) {
    // With a negative descriptor poll() looks away.
    const int end = options.survives ? -1 : daemon.pidfd;
    std::array<pollfd, 3> ready = {pollfd{end, POLLIN, 0},
                                   pollfd{talking ? peer : -1, POLLIN, 0},
                                   pollfd{child.reload(), POLLIN, 0}};
    if (::poll(ready.data(), ready.size(), -1) < 0) {
      if (errno == EINTR) continue;
      break;
    }
    if (ready[2].revents != 0) child.OnReloadEnd();
    // What was asked before the end is still answered.
    if (ready[1].revents != 0) {
      talking = child.AnswerOne();
      if (talking) continue;
      // Hanging up is how a daemon says that it is done. One that dies when it
      // has just taken our end hangs up, too, and another takes its place: that
      // one is given an end by the next of us.
      if (child.goodbye() || !IsThereStill(daemon.all)) break;
      ::_exit(1);
    }
    if (ready[0].revents != 0) break;
  }
  child.CleanUp();
  child.TellEnd();
  ::_exit(0);
}

}  // namespace tracefs
