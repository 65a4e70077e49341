// What the watchdog does (watchdog_process.h). One thread; nothing here waits
// for the file system that it guards.
#include "tracefs/daemon/watchdog_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
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
#include <vector>

#include "tracefs/base/detached_child.h"
#include "tracefs/base/log_socket.h"
#include "tracefs/base/passed_files.h"
#include "tracefs/daemon/capabilities.h"
#include "tracefs/daemon/log.h"
#include "tracefs/daemon/looker.h"
#include "tracefs/daemon/mount_info.h"
#include "tracefs/daemon/tracepoints.h"

namespace tracefs {
namespace {

class WatchdogChild {
 public:
  WatchdogChild(UniqueFd socket, pid_t daemon)
      : socket_(std::move(socket)), daemon_(daemon) {}

  int socket() const { return socket_.get(); }
  // Answers what has arrived; false when the daemon has hung up.
  bool AnswerOne();
  // Removes what is guarded, and bind mounts of it, unless it stays shut.
  void CleanUp();
  // Says in the log that the daemon is gone, unless it has said so itself.
  void TellEnd() const;

 private:
  struct Answer {
    int error = 0;
    UniqueFd fd;
    std::vector<UniqueFd> more = {};  // besides `fd`
    std::string text = {};
  };

  Answer Handle(WatchdogRequest request, const std::string& path);
  int Allow(const std::string& path);
  int Guard(const std::string& path);
  int Unmount(bool lazy);
  Answer MakeFile(const std::string& path) const;
  int UseLog(const std::string& text);
  Answer Connect() const;
  Answer OpenPoints(const std::string& text) const;
  Answer StartLooker() const;
  int UseReload(const std::string& path);
  int Reload() const;
  void RunReload() const;
  void Send(const Answer& answer) const;
  int UnmountNow(int flags) const;

  const UniqueFd socket_;
  const pid_t daemon_;
  bool goodbye_ = false;
  bool stays_shut_ = false;
  LogPlace log_{.kind = LogPlace::Kind::kNone, .path = ""};
  std::vector<std::string> allowed_;  // real paths
  std::string reload_;                // program; empty: none
  std::optional<MountPlace> guarded_;
  std::string path_;  // of guarded_
};

// fusermount3 undoes what it did; it alone may where we may not.
int RunFusermount(const std::string& path, bool lazy) {
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

int WatchdogChild::UnmountNow(int flags) const {
  // Relative to the directory that was found when the mount was new: nobody
  // can bend the way there any more.
  int error = 0;
  if (::fchdir(guarded_->parent.get()) != 0 ||
      ::umount2(guarded_->name.c_str(), flags | UMOUNT_NOFOLLOW) != 0) {
    error = errno;
  }
  (void)!::chdir("/");
  if (error == EPERM) {
    return RunFusermount(path_, (flags & MNT_DETACH) != 0);
  }
  return error;
}

int WatchdogChild::Allow(const std::string& path) {
  if (guarded_) return EPERM;
  const UniqueFd directory(
      ::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return errno;
  std::optional<std::string> real = PathOf(directory.get());
  if (!real) return ENOENT;
  allowed_.push_back(std::move(*real));
  return 0;
}

int WatchdogChild::Guard(const std::string& path) {
  if (guarded_) return EALREADY;
  std::optional<MountPlace> place = FindMount(path);
  if (!place) return errno;
  if (!place->mounted) return EINVAL;
  path_ = path;
  guarded_ = std::move(place);
  return 0;
}

int WatchdogChild::Unmount(bool lazy) {
  if (!guarded_) return EINVAL;
  if (!IsStillThere(*guarded_)) return 0;
  return UnmountNow(lazy ? MNT_DETACH : 0);
}

WatchdogChild::Answer WatchdogChild::MakeFile(const std::string& path) const {
  const size_t slash = path.rfind('/');
  if (path.empty() || path[0] != '/') return {EINVAL, {}};
  const std::string folder = slash == 0 ? "/" : path.substr(0, slash);
  const std::string name = path.substr(slash + 1);
  if (name.empty() || name == "." || name == "..") return {EISDIR, {}};
  const UniqueFd directory(
      ::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return {errno, {}};
  const std::optional<std::string> real = PathOf(directory.get());
  const auto below = [&](const std::string& allowed) {
    return *real == allowed || allowed == "/" ||
           (real->rfind(allowed, 0) == 0 && (*real)[allowed.size()] == '/');
  };
  if (!real || std::none_of(allowed_.begin(), allowed_.end(), below)) {
    return {EACCES, {}};
  }
  // What the daemon writes into its own mount it would trace again.
  if (guarded_ && DeviceOf(directory.get()) == guarded_->device) {
    return {ELOOP, {}};
  }
  Answer answer;
  answer.fd.Reset(::openat(
      directory.get(), name.c_str(),
      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600));
  if (!answer.fd) answer.error = errno;
  return answer;
}

WatchdogChild::Answer WatchdogChild::Handle(WatchdogRequest request,
                                            const std::string& path) {
  switch (request) {
    case WatchdogRequest::kAllow:
      return {Allow(path), {}};
    case WatchdogRequest::kGuard:
      return {Guard(path), {}};
    case WatchdogRequest::kUnmount:
      return {Unmount(/*lazy=*/false), {}};
    case WatchdogRequest::kUnmountLazy:
      return {Unmount(/*lazy=*/true), {}};
    case WatchdogRequest::kStayShut:
      stays_shut_ = true;
      return {};
    case WatchdogRequest::kMakeFile:
      return MakeFile(path);
    case WatchdogRequest::kLog:
      return {UseLog(path), {}};
    case WatchdogRequest::kConnectLog:
      return Connect();
    case WatchdogRequest::kTracepoints:
      return OpenPoints(path);
    case WatchdogRequest::kLook:
      return StartLooker();
    case WatchdogRequest::kUseReload:
      return {UseReload(path), {}};
    case WatchdogRequest::kReload:
      return {Reload(), {}};
    case WatchdogRequest::kGoodbye:
      goodbye_ = true;
      return {};
  }
  return {ENOSYS, {}};
}

int WatchdogChild::UseLog(const std::string& text) {
  // Before the daemon shuts itself in; nothing it says later leads elsewhere.
  if (guarded_) return EPERM;
  if (text.empty()) return EINVAL;
  log_ = {.kind = static_cast<LogPlace::Kind>(text[0]), .path = text.substr(1)};
  return 0;
}

WatchdogChild::Answer WatchdogChild::Connect() const {
  if (log_.path.empty()) return {ENOENT, {}};
  Result<UniqueFd> fd = ConnectLog(log_.path);
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

WatchdogChild::Answer WatchdogChild::StartLooker() const {
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
    // Nobody waits for the looker itself.
    if (::fork() != 0) ::_exit(0);
    ::dup2(own.get(), STDIN_FILENO);
    ::close_range(STDERR_FILENO + 1, ~0U, 0);
    RunLooker(UniqueFd(STDIN_FILENO));
  }
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return {0, std::move(theirs)};
}

int WatchdogChild::UseReload(const std::string& path) {
  // As with the log: what the daemon says later leads nowhere else.
  if (guarded_) return EPERM;
  if (path.empty() || path[0] != '/') return EINVAL;
  reload_ = path;
  return 0;
}

int WatchdogChild::Reload() const {
  if (!guarded_ || reload_.empty()) return EINVAL;
  const pid_t child = ::fork();
  if (child < 0) return errno;
  if (child == 0) {
    // The daemon asks us things while it takes its config anew.
    if (::fork() != 0) ::_exit(0);
    RunReload();
    ::_exit(0);
  }
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return 0;
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
    ::execl(reload_.c_str(), "tracefs-ctl", path_.c_str(), "reload", nullptr);
    const std::string why =
        "'" + reload_ + "' cannot be run: " + std::strerror(errno);
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
  if ((WIFEXITED(status) && WEXITSTATUS(status) == 0) || log_.path.empty()) {
    return;
  }
  said.resize(size);
  const Result<UniqueFd> fd = ConnectLog(log_.path);
  if (!fd.ok()) return;
  static_cast<void>(SendLog(
      fd->get(), LogDatagram(log_.kind, NoticeId::kReloadFailed, path_,
                             "the config was not taken anew: " + said)));
}

void WatchdogChild::TellEnd() const {
  if (!guarded_ || log_.path.empty()) return;
  const bool shut = stays_shut_ && IsStillThere(*guarded_);
  if (goodbye_ && !shut) return;
  const Result<UniqueFd> fd = ConnectLog(log_.path);
  if (!fd.ok()) return;
  static_cast<void>(SendLog(
      fd->get(),
      LogDatagram(
          log_.kind, NoticeId::kDied, path_,
          "the daemon (process " + std::to_string(daemon_) + ") " +
              (goodbye_ ? "has ended, its connection was cut" : "died") +
              (shut ? ": the mount stays shut until root unmounts it"
                    : ": the mount was taken away") +
              (goodbye_ ? "" : ", and its traces lack their end"))));
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
    n = ::recv(socket_.get(), question.data(), question.size(), 0);
  } while (n < 0 && errno == EINTR);
  if (n <= 0) return false;
  const std::string path(question.data() + 1, static_cast<size_t>(n) - 1);
  // No name holds a zero byte; a system call would see another one.
  if (path.find('\0') != std::string::npos) {
    Send({EINVAL, {}});
  } else {
    Send(Handle(static_cast<WatchdogRequest>(question[0]), path));
  }
  return true;
}

void WatchdogChild::CleanUp() {
  if (stays_shut_ || !guarded_ || !IsStillThere(*guarded_)) return;
  // Bind mounts of it are as dead. While it is there, nothing else can have
  // its device number; afterwards anything may.
  const std::vector<std::string> paths = MountsOfDevice(guarded_->device);
  for (const std::string& path : paths) {
    const std::optional<MountPlace> place = FindMount(path);
    if (place && place->device == guarded_->device &&
        place->id != guarded_->id) {
      ::umount2(path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
    }
  }
  UnmountNow(MNT_DETACH);
}

// Apart from the daemon and its terminal, with as little power as will do.
void Isolate(int socket, int daemon) {
  DetachChild("tracefs-watch", {socket, daemon});
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

void RunWatchdog(UniqueFd socket, UniqueFd daemon) {
  const pid_t parent = ::getppid();
  Isolate(socket.get(), daemon.get());
  WatchdogChild child(std::move(socket), parent);
  const int peer = child.socket();
  for (bool talking = true;;) {
    // With a negative descriptor poll() looks away.
    std::array<pollfd, 2> ready = {pollfd{daemon.get(), POLLIN, 0},
                                   pollfd{talking ? peer : -1, POLLIN, 0}};
    if (::poll(ready.data(), ready.size(), -1) < 0) {
      if (errno == EINTR) continue;
      break;
    }
    // What was asked before the end is still answered.
    if (ready[1].revents != 0) {
      talking = child.AnswerOne();
      // Hanging up is how a daemon says that it is done.
      if (!talking) break;
      continue;
    }
    if (ready[0].revents != 0) break;
  }
  child.CleanUp();
  child.TellEnd();
  ::_exit(0);
}

}  // namespace tracefs
