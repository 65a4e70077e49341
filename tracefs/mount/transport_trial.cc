#include "tracefs/mount/transport_trial.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include "tracefs/base/clock.h"
#include "tracefs/base/thread.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/fs/fuse_api.h"
#include "tracefs/text/duration.h"

namespace tracefs {
namespace {

constexpr uint64_t kPatienceNs = 50 * kNsPerMs;  // for each transport
constexpr size_t kEnough = 48;

// A file system of one folder, whose attributes are requested.
struct Folder {
  bool uring = false;
  std::atomic<bool> by_ring{false};  // the last request came by one
};

void Getattr(fuse_req_t req, fuse_ino_t /*ino*/, fuse_file_info* /*fi*/) {
  auto* const folder = static_cast<Folder*>(fuse_req_userdata(req));
#if TRACEFS_FUSE_AT_LEAST(18)
  folder->by_ring = fuse_req_is_uring(req);
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

// The median; 0 if there were not enough by that transport in time.
uint64_t Ask(const UniqueFd& mount, const Folder& folder) {
  std::vector<uint64_t> times;
  const uint64_t end = MonotonicNs() + kPatienceNs;
  while (times.size() < kEnough) {
    struct statx stx;
    const uint64_t begin = MonotonicNs();
    if (begin > end ||
        ::statx(mount.get(), "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC,
                STATX_BASIC_STATS, &stx) != 0) {
      return 0;
    }
    // The first ones come by the device until the rings are ready.
    if (folder.by_ring.load() == folder.uring) {
      times.push_back(MonotonicNs() - begin);
    }
  }
  const auto middle = times.begin() + kEnough / 2;
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

uint64_t Measure(bool uring) {
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
    if (serves) time = Ask(mount, folder);
    fuse_session_exit(session);
    mount.Reset();  // the connection ends, and with it the loop
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
  return {.uring_ns = Measure(true), .dev_ns = Measure(false)};
}

}  // namespace tracefs
