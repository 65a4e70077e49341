#include "tracefs/mount/session.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "tracefs/base/join.h"
#include "tracefs/base/notice.h"
#include "tracefs/base/thread.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/mount/dead_mount.h"
#include "tracefs/mount/fuse_messages.h"

namespace tracefs {
namespace {

constexpr int kSecondsAfterSignal = 10;
// Where some wait for a store that does not answer.
constexpr int kSecondsWhereItHangs = 2;

// A name as one option of a list. libfuse takes a comma for the end of it, and
// a backslash away from whatever follows (fuse_opt.h).
std::string Escaped(const std::string& name) {
  std::string text;
  for (const char c : name) {
    if (c == ',' || c == '\\') text += '\\';
    text += c;
  }
  return text;
}

sigset_t WatchedSignals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (const int s : {SIGTERM, SIGINT, SIGHUP, SIGUSR2}) ::sigaddset(&set, s);
  return set;
}

}  // namespace

Result<Source> OpenSource(const std::string& path, bool below,
                          const std::string& dead_at) {
  Source source;
  const unsigned recursive = below ? AT_RECURSIVE : 0;
  const unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | recursive;
  if (dead_at.empty()) {
    source.fd.Reset(static_cast<int>(
        ::syscall(SYS_open_tree, AT_FDCWD, path.c_str(), flags)));
  } else {
    Result<UniqueFd> clone = CloneBelowDeadMount(dead_at, path, flags);
    if (!clone.ok()) return clone.status();
    source.fd = *std::move(clone);
  }
  source.cloned = source.fd.valid();
  struct statvfs own;
  if (source.cloned && ::fstatvfs(source.fd.get(), &own) == 0) {
    source.flags = own.f_flag;
  }
  if (source.cloned) {
    // The tree must not give us privileges or lead to a device.
    mount_attr restricted{};
    restricted.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    if (::mount_setattr(source.fd.get(), "", AT_EMPTY_PATH | recursive,
                        &restricted, sizeof restricted) != 0) {
      return Status::System(errno, "source '" + path + "': nosuid, nodev");
    }
  } else {
    source.fd.Reset(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }
  if (!source.fd) return Status::System(errno, "source '" + path + "'");
  struct stat st;
  if (::fstatat(source.fd.get(), "", &st, AT_EMPTY_PATH) != 0) {
    return Status::System(errno, "source '" + path + "'");
  }
  if (!S_ISDIR(st.st_mode)) {
    return Status::System(ENOTDIR, "source '" + path + "'");
  }
  return source;
}

Status SetSourceFlags(const Source& source, const MountFlags& flags) {
  if (!source.cloned || (flags.source_set | flags.source_clear) == 0) return {};
  mount_attr wanted{};
  wanted.attr_set = flags.source_set;
  wanted.attr_clr = flags.source_clear;
  if (::mount_setattr(source.fd.get(), "", AT_EMPTY_PATH, &wanted,
                      sizeof wanted) == 0) {
    return {};
  }
  return Status::System(
      errno, "access times of the source: they stay as its own mount has them");
}

Result<std::unique_ptr<Session>> Session::Mount(
    const MountOptions& options, const TransportChoice& transport,
    FileSystem& fs, Watchdog& watchdog, bool replaces) {
  std::unique_ptr<Session> session(new Session(watchdog));
  session->replaces_ = replaces;
  char resolved[PATH_MAX];
  if (::realpath(options.mount_point.c_str(), resolved) == nullptr) {
    return Status::System(errno, "mount point '" + options.mount_point + "'");
  }
  session->mount_point_ = resolved;
  // A mount on a file could not be used.
  struct stat st;
  if (::stat(resolved, &st) == 0 && !S_ISDIR(st.st_mode)) {
    return Status::System(ENOTDIR, "mount point '" + options.mount_point + "'");
  }

  if (Status s = session->MakeSession(options, transport, fs); !s.ok()) {
    return s;
  }
  if (Status s = session->MountThere(); !s.ok()) return s;
  if (Status s = watchdog.Guard(resolved); !s.ok()) {
    if (!replaces) fuse_session_unmount(session->session_);
    return s.Prefixed("watchdog");
  }
  session->mounted_ = true;
  if (replaces) {
    if (Status s = session->StayShut(); !s.ok()) return s;
  }
  fs.SetSession(session->session_);
  return session;
}

Result<std::unique_ptr<Session>> Session::Adopt(
    const MountOptions& options, const TransportChoice& transport,
    FileSystem& fs, Watchdog& watchdog, UniqueFd connection) {
  std::unique_ptr<Session> session(new Session(watchdog));
  session->mount_point_ = options.mount_point;
  if (Status s = session->MakeSession(options, transport, fs); !s.ok()) {
    return s;
  }
  const std::string place = "/dev/fd/" + std::to_string(connection.get());
  if (fuse_session_mount(session->session_, place.c_str()) != 0) {
    return Status::System(EBADF, "the connection to the kernel");
  }
  static_cast<void>(connection.Release());
  session->mounted_ = true;
  fs.SetSession(session->session_);
  return session;
}

Status Session::Rehearse(FileSystem& fs) {
  if (!RequestLoop::ServeFirstAgain(session_, *fs.area())) {
    return Status::SystemSaid(EPROTO, "the daemon had not begun");
  }
  if (fuse_session_exited(session_) == 0 && fs.agrees()) return Status::Ok();
  return Status::SystemSaid(
      EPROTO,
      "this program would agree with the kernel on something else than the one "
      "that has mounted it");
}

Status Session::MakeSession(const MountOptions& options,
                            const TransportChoice& transport, FileSystem& fs) {
  BoundFuseMessages();
  std::vector<std::string> fuse_options = {"default_permissions",
                                           "subtype=tracefs",
                                           "fsname=" + Escaped(options.source)};
  if (::geteuid() == 0) fuse_options.push_back("allow_other");
  readers_ = transport.readers;
  if (transport.uring) {
    fuse_options.push_back("io_uring");
    fuse_options.push_back("io_uring_q_depth=" +
                           std::to_string(transport.queue_depth));
  }
  fuse_options.insert(fuse_options.end(), options.fuse_options.begin(),
                      options.fuse_options.end());
  const std::string joined = JoinWords(fuse_options, ",");
  fuse_args args = FUSE_ARGS_INIT(0, nullptr);
  fuse_opt_add_arg(&args, "tracefs-mount");
  fuse_opt_add_arg(&args, "-o");
  fuse_opt_add_arg(&args, joined.c_str());
  const fuse_lowlevel_ops& ops = FileSystem::Operations();
  session_ = fuse_session_new(&args, &ops, sizeof ops, &fs);
  fuse_opt_free_args(&args);
  if (session_ == nullptr) {
    return Status::Invalid("libfuse refused the options -o " + joined);
  }
  return Status::Ok();
}

namespace {

// What libfuse would say on standard error, and what to do about it.
Status CheckDevice() {
  const UniqueFd device(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (device) return Status::Ok();
  const int error = errno;
  return Status::SystemSaid(
      error, std::string("/dev/fuse: ") + std::strerror(error) +
                 "; next: tracefs-mount --doctor says what to change");
}

}  // namespace

Status Session::MountThere() {
  if (Status s = CheckDevice(); !s.ok()) {
    return s.Prefixed("mounting at '" + mount_point_ + "'");
  }
  const auto mount_at = [this](const std::string& place) {
    if (fuse_session_mount(session_, place.c_str()) == 0) return Status::Ok();
    const int error = errno;
    return Status::System(error != 0 ? error : EPERM,
                          "mounting at '" + mount_point_ + "'");
  };
  if (!replaces_) return mount_at(mount_point_);
  const Result<PlaceAside> aside = PlaceAside::Make();
  if (!aside.ok()) return aside.status();
  if (Status s = mount_at(aside->path()); !s.ok()) return s;
  return ReplaceDeadMount(*aside, mount_point_);
}

Session::~Session() {
  if (session_ == nullptr) return;
  if (watcher_.joinable()) {
    // It was to be served, and then was not.
    fuse_session_exit(session_);
    if (loop_ != nullptr) static_cast<void>(loop_->Serve());
    GiveUpPlace();
    StopWatching();
  }
  loop_.reset();
  // First the connection, so that no caller waits for an answer any more.
  fuse_session_destroy(session_);
  const bool shut =
      stays_shut_.load() && (served_.load() || replaces_) && !signalled_.load();
  if (mounted_ && !shut) (void)watchdog_.Unmount(/*lazy=*/true);
}

Status Session::StayShut() {
  if (stays_shut_.load()) return Status::Ok();
  Status told = watchdog_.StayShut();
  if (told.ok()) stays_shut_.store(true);
  return told;
}

void Session::UnmountAnyway() {
  Status status = watchdog_.Unmount(/*lazy=*/false);
  if (status.error() == EBUSY) status = watchdog_.Unmount(/*lazy=*/true);
  if (!status.ok()) {
    Notify(NoticeId::kFailed,
           status.message() + "; run umount -l '" + mount_point_ + "'");
  }
}

// Ends with StopWatching.
void Session::WatchSignals(const std::function<void()>& on_usr2,
                           const std::function<bool()>& hangs) {
  const sigset_t signals = WatchedSignals();
  const timespec second = {1, 0};
  int seconds_left = -1;
  while (watches_.load()) {
    const int got = ::sigtimedwait(&signals, nullptr, &second);
    if (!watches_.load()) return;  // our own signal
    if (on_each_second_) on_each_second_();
    if (got == SIGUSR2) {
      if (on_usr2) on_usr2();
    } else if (got == SIGHUP && on_hang_up_ && !signalled_.load()) {
      on_hang_up_();
    } else if (got > 0 && !signalled_.exchange(true)) {
      seconds_left = kSecondsAfterSignal;
      if (told_to_end_ != nullptr) told_to_end_->store(got);
      UnmountAnyway();
    } else if (seconds_left >= 0 && got < 0 && errno == EAGAIN) {
      --seconds_left;
      const bool waits_in_vain =
          seconds_left <= kSecondsAfterSignal - kSecondsWhereItHangs && hangs();
      if (seconds_left > 0 && !waits_in_vain) continue;
      seconds_left = -1;
      // A process still holds a file. Leaving the loop closes the connection:
      // it gets ENOTCONN instead of a hang.
      fuse_session_exit(session_);
    }
  }
}

void Session::BlockSignals() {
  const sigset_t signals = WatchedSignals();
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  // A write into a closed pipe or past a limit is an error, not our end.
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
}

void Session::ForgetNames() {
#if TRACEFS_FUSE_AT_LEAST(18)
  // An older kernel refuses, and keeps them for the given time.
  static_cast<void>(fuse_lowlevel_notify_increment_epoch(session_));
#endif
}

Status Session::Begin() {
  if (loop_ != nullptr) {
    return takes_over_ ? loop_->TakeOver() : loop_->Begin();
  }
  // The kernel's first request, which it makes when it mounts.
  fuse_buf buffer{};
  int n;
  do {
    n = fuse_session_receive_buf(session_, &buffer);
  } while (n == -EINTR);
  if (n > 0) fuse_session_process_buf(session_, &buffer);
  std::free(buffer.mem);
  if (n <= 0) {
    return Status::System(n < 0 ? -n : ENODEV,
                          "the first request of the mount");
  }
  if (fuse_session_exited(session_) != 0) {
    return Status::SystemSaid(
        EPROTO,
        "libfuse and the kernel do not agree on this mount; look at "
        "what -o asks for");
  }
  return Status::Ok();
}

Status Session::StartServing(std::function<void()> on_usr2,
                             std::function<bool()> hangs) {
  Status started = StartThread(
      "tracefs-signal",
      [this, on_usr2 = std::move(on_usr2), hangs = std::move(hangs)] {
        WatchSignals(on_usr2, hangs);
      },
      &watcher_);
  if (!started.ok()) return started;
  if (loop_ != nullptr) return loop_->Start();
  return StartThread(
      "tracefs-place", [this] { place_is_needed_.acquire(); }, &place_);
}

void Session::StopWatching() {
  watches_.store(false);
  ::pthread_kill(watcher_.native_handle(), SIGTERM);
  watcher_.join();
}

void Session::GiveUpPlace() {
  if (!place_.joinable()) return;
  place_is_needed_.release();
  place_.join();
}

int Session::ServeByLibfuse() {
  // For want of a first thread it returns -1 at once. What had its place is
  // gone, and counted for a moment longer.
  constexpr int kTriesForThread = 500;
  GiveUpPlace();
  fuse_loop_config* config = fuse_loop_cfg_create();
  fuse_loop_cfg_set_clone_fd(config, 0);
  fuse_loop_cfg_set_max_threads(config, readers_);
  int rc = -1;
  for (int i = 0; i < kTriesForThread; ++i) {
    rc = fuse_session_loop_mt(session_, config);
    if (rc != -1 || fuse_session_exited(session_) != 0) break;
    rc = -EAGAIN;
    ::usleep(10'000);
  }
  fuse_loop_cfg_destroy(config);
  return rc;
}

Status Session::Serve() {
  const int rc = loop_ != nullptr ? loop_->Serve() : ServeByLibfuse();

  served_.store(true);
  StopWatching();
  // After umount(8) there is nothing left to unmount, and anything there now
  // under that name is not ours.
  if (fuse_session_exited(session_) != 0) mounted_ = false;
  return rc == 0 ? Status::Ok()
                 : Status::System(rc < 0 ? -rc : EIO, "serving requests");
}

}  // namespace tracefs
