#include "tracefs/mount/transport_trial.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <new>
#include <string>
#include <thread>
#include <utility>

#include "tracefs/base/clock.h"
#include "tracefs/base/detached_child.h"
#include "tracefs/base/thread.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/fs/fuse_api.h"
#include "tracefs/text/duration.h"

namespace tracefs {
namespace {

constexpr uint64_t kPatienceNs = 50 * kNsPerMs;  // for each transport
constexpr size_t kEnough = 48;
// Whoever asks is stopped, or does not get to run.
constexpr int kMostMsForAsking = 1000;

// What both processes see.
struct Shared {
  std::atomic<bool> by_ring{false};  // the last request came by one
  std::atomic<uint64_t> median_ns{0};
};

// A file system of one folder, whose attributes are requested.
struct Folder {
  bool uring = false;
  Shared* shared = nullptr;
};

void Getattr(fuse_req_t req, fuse_ino_t /*ino*/, fuse_file_info* /*fi*/) {
  auto* const folder = static_cast<Folder*>(fuse_req_userdata(req));
#if TRACEFS_FUSE_AT_LEAST(18)
  folder->shared->by_ring = fuse_req_is_uring(req);
#endif
  struct stat st {};
  st.st_ino = FUSE_ROOT_ID;
  st.st_mode = S_IFDIR | 0700;
  st.st_nlink = 2;
  fuse_reply_attr(req, &st, 0);
}

// A mount that is attached nowhere; its requests come by `device`.
UniqueFd MountNowhere(const UniqueFd& device) {
  const UniqueFd context(
      static_cast<int>(::syscall(SYS_fsopen, "fuse", FSOPEN_CLOEXEC)));
  if (!context) return UniqueFd();
  const auto set = [&](const char* key, const std::string& value) {
    return ::syscall(SYS_fsconfig, context.get(), FSCONFIG_SET_STRING, key,
                     value.c_str(), 0) == 0;
  };
  if (!set("source", "tracefs-trial") ||
      !set("fd", std::to_string(device.get())) || !set("rootmode", "40000") ||
      !set("user_id", std::to_string(::geteuid())) ||
      !set("group_id", std::to_string(::getegid())) ||
      ::syscall(SYS_fsconfig, context.get(), FSCONFIG_CMD_CREATE, nullptr,
                nullptr, 0) != 0) {
    return UniqueFd();
  }
  return UniqueFd(static_cast<int>(
      ::syscall(SYS_fsmount, context.get(), FSMOUNT_CLOEXEC, 0)));
}

// The median; 0 if there were not enough by that transport in time. Allocates
// nothing.
uint64_t Ask(int mount, const Folder& folder) {
  std::array<uint64_t, kEnough> times;
  size_t count = 0;
  const uint64_t end = MonotonicNs() + kPatienceNs;
  while (count < times.size()) {
    struct statx stx;
    const uint64_t begin = MonotonicNs();
    if (begin > end || ::statx(mount, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC,
                               STATX_BASIC_STATS, &stx) != 0) {
      return 0;
    }
    // The first ones come by the device until the rings are ready.
    if (folder.shared->by_ring.load() == folder.uring) {
      times[count++] = MonotonicNs() - begin;
    }
  }
  const auto middle = times.begin() + kEnough / 2;
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// Asks from another process, which has the mount and not the device: the
// connection ends with the process that serves, whatever becomes of that, and
// with the connection each request that waits for an answer. A process that
// waited for itself could not be killed. `mount` is the other's alone then.
uint64_t AskFromOutside(UniqueFd mount, const Folder& folder) {
  const pid_t child = ::fork();
  if (child < 0) return 0;
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::prctl(PR_SET_NAME, "tracefs-trial");
    int kept = mount.get();
    CloseFilesFrom(0, {&kept, 1});
    folder.shared->median_ns = Ask(kept, folder);
    ::_exit(0);
  }
  mount.Reset();
  const UniqueFd process(
      static_cast<int>(::syscall(SYS_pidfd_open, child, /*flags=*/0)));
  pollfd ended = {process.get(), POLLIN, 0};
  if (!process || ::poll(&ended, 1, kMostMsForAsking) != 1) {
    ::kill(child, SIGKILL);
  }
  // Its request, should it have one, is answered meanwhile.
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return folder.shared->median_ns.load();
}

uint64_t Measure(bool uring, Shared* shared) {
  // libfuse takes over a descriptor named like this, and closes it.
  UniqueFd device(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (!device) return 0;
  const std::string name = "/dev/fd/" + std::to_string(device.get());
  fuse_args args = FUSE_ARGS_INIT(0, nullptr);
  fuse_opt_add_arg(&args, "tracefs-trial");
  if (uring) {
    fuse_opt_add_arg(&args, "-o");
    fuse_opt_add_arg(&args, "io_uring,io_uring_q_depth=1");
  }
  fuse_lowlevel_ops ops{};
  ops.getattr = Getattr;
  Folder folder;
  folder.uring = uring;
  folder.shared = shared;
  fuse_session* const session =
      fuse_session_new(&args, &ops, sizeof ops, &folder);
  fuse_opt_free_args(&args);
  if (session == nullptr) return 0;
  uint64_t time = 0;
  UniqueFd mount = MountNowhere(device);
  if (mount && fuse_session_mount(session, name.c_str()) == 0) {
    (void)!device.Release();
    std::thread server;
    const bool serves =
        StartThread(
            "tracefs-trial", [&] { fuse_session_loop(session); }, &server)
            .ok();
    // The connection ends with the mount, and with it the loop.
    if (serves) time = AskFromOutside(std::move(mount), folder);
    fuse_session_exit(session);
    mount.Reset();
    if (serves) server.join();
  }
  fuse_session_destroy(session);
  return time;
}

}  // namespace

std::string TrialFigures::ToString() const {
  if (!measured()) return "";
  return "a request takes " + DurationText(uring_ns) +
         " there and back over io_uring, " + DurationText(dev_ns) +
         " over /dev/fuse";
}

TrialFigures MeasureTransports() {
  if (::geteuid() != 0) return {};
  void* const memory = ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE,
                              MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return {};
  const auto measure = [memory](bool uring) {
    return Measure(uring, ::new (memory) Shared);
  };
  const TrialFigures figures = {.uring_ns = measure(true),
                                .dev_ns = measure(false)};
  ::munmap(memory, sizeof(Shared));
  return figures;
}

}  // namespace tracefs
