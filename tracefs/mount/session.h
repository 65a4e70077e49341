// Session: the FUSE mount itself, from fuse_session_new to unmount.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>

#include "tracefs/daemon/watchdog.h"
#include "tracefs/fs/file_system.h"
#include "tracefs/mount/mount_flags.h"
#include "tracefs/mount/options.h"
#include "tracefs/mount/request_loop.h"
#include "tracefs/mount/transport.h"

namespace tracefs {

// The directory to be traced, held so that mounting over it, or inside it,
// does not lead back into our own mount: a private clone of its mount where
// that is allowed (open_tree(2)), else a plain O_PATH descriptor.
struct Source {
  UniqueFd fd;
  bool cloned = false;
  unsigned long flags = 0;  // ST_… of its own mount
};
// `below`: with what is mounted below it, where it is cloned. `dead_at`, if not
// empty: ignores the dead mounts there (dead_mount.h).
Result<Source> OpenSource(const std::string& path, bool below = false,
                          const std::string& dead_at = "");
// Keeps access times in our clone as `flags` have it; nothing without a clone.
// In a user namespace the kernel may refuse that (EPERM).
Status SetSourceFlags(const Source& source, const MountFlags& flags);

class Session {
 public:
  // Blocks TERM, INT and HUP in this thread and those it makes, so that only
  // Serve ever takes them. Before the first thread is made: a signal kills the
  // process if any thread does not block it.
  static void BlockSignals();

  // Mounts, and entrusts the mount to `watchdog`, which unmounts it. Both
  // outlive the session. `replaces`: there is a dead mount that covers the
  // directory below, and this one takes its place and its duty; it stays even
  // if it is never served.
  static Result<std::unique_ptr<Session>> Mount(
      const MountOptions& options, const TransportChoice& transport,
      FileSystem& fs, Watchdog& watchdog, bool replaces = false);
  // That of another program, by the connection to the kernel, which `watchdog`
  // guards already. The connection may be another, to try it (Rehearse).
  static Result<std::unique_ptr<Session>> Adopt(
      const MountOptions& options, const TransportChoice& transport,
      FileSystem& fs, Watchdog& watchdog, UniqueFd connection);
  // Serves the kernel's first request once more, as each later daemon does.
  // Whether this program would agree on the same (FileSystem::agrees).
  Status Rehearse(FileSystem& fs);
  ~Session();

  // Before Begin: the mount is to survive this daemon, which takes the place of
  // a dead one if `takes_over`. `refused`: as RequestLoop has it.
  void Survive(FileSystem& fs, bool takes_over, RequestLoop::Refused refused) {
    loop_ = std::make_unique<RequestLoop>(session_, fs, readers_,
                                          std::move(refused));
    told_to_end_ = &fs.area()->header().told_to_end;
    takes_over_ = takes_over;
  }

  // Negotiates the protocol with the kernel: a failure here fails the mount.
  // After this requests may come, and wait for Serve.
  Status Begin();

  // Makes the threads without which nothing is served, so that no mount is told
  // to be there that is not served. After Begin.
  // TERM, INT and HUP unmount from now on, lazily where it is in use; requests
  // are answered until the last user is gone, but for at most 10 s after a
  // signal, and 2 s where some of them hang in the store below (`hangs`).
  // Needs BlockSignals. USR2 calls `on_usr2`, which may be empty, in a thread
  // for signals; likewise HUP what OnHangUp was told, if that is not empty, and
  // is no end then.
  Status StartServing(std::function<void()> on_usr2,
                      std::function<bool()> hangs);

  // Serves requests until the file system is unmounted, by umount(8) or by a
  // signal. After StartServing.
  Status Serve();

  // From now on only umount(8), a signal or Unmount ends it: if the daemon
  // dies, or its connection is cut, the mount stays and answers with errors.
  // Permanent. Threads: any.
  Status StayShut();

  // Before StartServing.
  void OnHangUp(std::function<void()> call) { on_hang_up_ = std::move(call); }
  // Called each second or more often, by the thread for signals. Before
  // StartServing.
  void OnEachSecond(std::function<void()> call) {
    on_each_second_ = std::move(call);
  }

  // Makes the kernel forget its cached names, if possible (Linux 6.16): each is
  // looked up again on its next use. Not from a worker's handler.
  void ForgetNames();

  // Takes no more requests, or does again (RequestLoop). Only of a mount that
  // is to survive. Threads: any that serves nothing.
  bool Pause(std::chrono::milliseconds patience) {
    return loop_->Pause(patience);
  }
  void Resume() { loop_->Resume(); }

  // The connection to the kernel.
  int device() const { return fuse_session_fd(session_); }

  // Unmounts it; Serve then returns. kSystem with EBUSY while it is in use.
  // Threads: any.
  Status Unmount() { return watchdog_.Unmount(/*lazy=*/false); }
  // The same, lazily where it is in use, as a signal does. Threads: any.
  void End() {
    if (!signalled_.exchange(true)) UnmountAnyway();
  }

  // Absolute, without symbolic links.
  const std::string& mount_point() const { return mount_point_; }

  // Why it ended: "unmount" or "signal".
  const char* end_reason() const {
    return signalled_.load() || (told_to_end_ != nullptr && *told_to_end_ != 0)
               ? "signal"
               : "unmount";
  }

 private:
  explicit Session(Watchdog& watchdog) : watchdog_(watchdog) {}
  void WatchSignals(const std::function<void()>& on_usr2,
                    const std::function<bool()>& hangs);
  void StopWatching();
  void GiveUpPlace();
  int ServeByLibfuse();
  void UnmountAnyway();
  Status MakeSession(const MountOptions& options,
                     const TransportChoice& transport, FileSystem& fs);
  // Mounts at mount_point_, or in place of the dead mount there.
  Status MountThere();

  Watchdog& watchdog_;
  std::string mount_point_;
  fuse_session* session_ = nullptr;
  bool mounted_ = false;
  bool replaces_ = false;
  std::unique_ptr<RequestLoop> loop_;  // null: libfuse's
  bool takes_over_ = false;
  // By which signal, where a later daemon must know; null: with this one it is
  // over.
  std::atomic<int32_t>* told_to_end_ = nullptr;
  int readers_ = 1;
  std::function<void()> on_hang_up_;
  std::function<void()> on_each_second_;
  std::thread watcher_;  // of signals
  std::atomic<bool> watches_{true};
  // Has the place of libfuse's first thread among those that we may have.
  std::thread place_;
  std::binary_semaphore place_is_needed_{0};
  std::atomic<bool> signalled_{false};
  std::atomic<bool> served_{false};
  std::atomic<bool> stays_shut_{false};
};

}  // namespace tracefs
