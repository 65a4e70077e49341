// Building and watching the filter (seccomp_filter.h). seccomp(2),
// seccomp_unotify(2), libseccomp's seccomp_rule_add(3).
#include "tracefs/daemon/seccomp_filter.h"

#include "tracefs/base/join.h"
#include "tracefs/base/sanitizers.h"

#if TRACEFS_HAVE_SECCOMP

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

#include "tracefs/base/notice.h"
#include "tracefs/base/thread.h"
#include "tracefs/daemon/receiver_calls.h"
#include "tracefs/daemon/seccomp_calls.h"

namespace tracefs {
namespace {

// Everything that libfuse and the handlers ask of a descriptor by ioctl.
constexpr std::array<unsigned long, 15> kIoctls = {
    FS_IOC_GETFLAGS,
    FS_IOC_SETFLAGS,
    FS_IOC_GETVERSION,
    FS_IOC_FSGETXATTR,
    FS_IOC_FSSETXATTR,
    FICLONERANGE,               // what is kept (tracefs/keep)
    FS_IOC_FIEMAP,              // where it lies (STR_EXTENTS)
    _IOR(229, 0, uint32_t),     // FUSE_DEV_IOC_CLONE
    _IOW(229, 1, uint64_t[2]),  // FUSE_DEV_IOC_BACKING_OPEN
    _IOW(229, 2, uint32_t),     // FUSE_DEV_IOC_BACKING_CLOSE
    SECCOMP_IOCTL_NOTIF_RECV,   // RefusalCounter
    SECCOMP_IOCTL_NOTIF_SEND,   // RefusalCounter
    TCGETS,                     // isatty(), before the first message
    PERF_EVENT_IOC_SET_OUTPUT,  // of tracepoints that share a ring
    PERF_EVENT_IOC_DISABLE,     // of one whose place another takes
};

constexpr std::array<int, 7> kPrctls = {
    PR_SET_NAME,       PR_GET_NAME,       PR_GET_SECUREBITS,  PR_CAPBSET_READ,
    PR_SET_IO_FLUSHER, PR_SET_TIMERSLACK, PR_GET_NO_NEW_PRIVS};

// Not F_SETOWN, F_SETSIG and F_NOTIFY: with them the kernel sends any signal to
// any process, in the name of a user id 0 that this process still has.
constexpr std::array<int, 14> kFcntls = {
    F_DUPFD,     F_DUPFD_CLOEXEC, F_GETFD,      F_SETFD,     F_GETFL,
    F_SETFL,     F_GETLK,         F_SETLK,      F_SETLKW,    F_OFD_GETLK,
    F_OFD_SETLK, F_OFD_SETLKW,    F_SETPIPE_SZ, F_GETPIPE_SZ};

class Builder {
 public:
  explicit Builder(uint32_t default_action)
      : context_(seccomp_init(default_action), &seccomp_release) {
    if (context_ == nullptr) error_ = EINVAL;
  }

  void Allow(int number) { Add(SCMP_ACT_ALLOW, number, {}); }
  void Allow(const char* name) {
    const int number = seccomp_syscall_resolve_name(name);
    // Unknown to this libseccomp or to this architecture: not called either.
    if (number >= 0) Allow(number);
  }
  // Only if the bits `mask` of argument `index` are those of `value`. Of an int
  // the kernel ignores the upper 32.
  void AllowIf(const char* name, unsigned index, uint64_t mask,
               uint64_t value) {
    Add(SCMP_ACT_ALLOW, seccomp_syscall_resolve_name(name),
        {{index, SCMP_CMP_MASKED_EQ, mask, value}});
  }
  // Only if the first two arguments, of type int, are `first` and `second`.
  void AllowIfTwo(const char* name, uint64_t first, uint64_t second) {
    Add(SCMP_ACT_ALLOW, seccomp_syscall_resolve_name(name),
        {{0, SCMP_CMP_MASKED_EQ, 0xffffffff, first},
         {1, SCMP_CMP_MASKED_EQ, 0xffffffff, second}});
  }
  void Refuse(const char* name, int error) {
    Add(SCMP_ACT_ERRNO(static_cast<uint16_t>(error)),
        seccomp_syscall_resolve_name(name), {});
  }

  // An errno value.
  int Load() {
    if (error_ != 0) return error_;
    // A binary tree instead of a list; the kernel keeps a table of calls that
    // are always allowed besides.
    seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2);
    // No slower memory accesses for a process that runs no foreign code.
    seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_SSB, 1);
    return -seccomp_load(context_.get());
  }
  // The library keeps its own descriptor to the end of the process.
  UniqueFd TakeNotificationFd() {
    const UniqueFd original(seccomp_notify_fd(context_.get()));
    return UniqueFd(::fcntl(original.get(), F_DUPFD_CLOEXEC, 0));
  }

 private:
  void Add(uint32_t action, int number,
           const std::vector<scmp_arg_cmp>& conditions) {
    if (error_ != 0 || number < 0) return;
    const int rc = seccomp_rule_add_array(
        context_.get(), action, number,
        static_cast<unsigned>(conditions.size()), conditions.data());
    // Some calls are one and the same on some machines.
    if (rc != 0 && rc != -EEXIST) error_ = -rc;
  }

  std::unique_ptr<void, decltype(&seccomp_release)> context_;
  int error_ = 0;
};

// What depends on arguments, and is the same for all.
void AddCommonRules(Builder& rules) {
  constexpr uint64_t kAll = 0xffffffff;
  // Threads, but no processes, and none in a namespace of its own. What clone3
  // is asked for lies in memory, where a filter cannot look; without it the C
  // library uses clone.
  constexpr uint64_t kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP |
                                   CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                                   CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWTIME;
  rules.AllowIf("clone", 0, CLONE_THREAD | kNamespaces, CLONE_THREAD);
  rules.Refuse("clone3", ENOSYS);
  // No new machine code.
  rules.AllowIf("mmap", 2, PROT_EXEC, 0);
  rules.AllowIf("mprotect", 2, PROT_EXEC, 0);
  // Signals to our own threads, limits of our own.
  rules.AllowIf("tgkill", 0, kAll, static_cast<uint64_t>(::getpid()));
  rules.AllowIf("prlimit64", 0, kAll, 0);
  for (const int option : kPrctls) {
    rules.AllowIf("prctl", 0, kAll, static_cast<uint64_t>(option));
  }
  for (const int command : kFcntls) {
    rules.AllowIf("fcntl", 1, kAll, static_cast<uint64_t>(command));
  }
}

void AddReceiverRules(Builder& rules) {
  for (const char* name : kReceiverCalls) rules.Allow(name);
  for (const unsigned long command :
       {static_cast<unsigned long>(SECCOMP_IOCTL_NOTIF_RECV),
        static_cast<unsigned long>(SECCOMP_IOCTL_NOTIF_SEND),
        static_cast<unsigned long>(TCGETS)}) {
    rules.AllowIf("ioctl", 1, 0xffffffff, command);
  }
  AddCommonRules(rules);
}

void AddRules(const SeccompOptions& options, Builder& rules) {
  if (options.receiver) return AddReceiverRules(rules);
  for (const char* name : kAllowedCalls) rules.Allow(name);
  for (const int number : kAllowedNumbers) rules.Allow(number);
  if (options.uring) {
    for (const char* name : kUringCalls) rules.Allow(name);
    // One more filter (ring_limits.h).
    rules.AllowIf("seccomp", 0, 0xffffffff, SECCOMP_SET_MODE_FILTER);
  }
  if (options.file_handles) rules.Allow("open_by_handle_at");
  constexpr uint64_t kAll = 0xffffffff;
  // The calling thread's priority and processors, not those of other processes
  // of root: also PRIO_USER and PRIO_PGRP take a 0 for their own.
  rules.AllowIfTwo("setpriority", PRIO_PROCESS, 0);
  rules.AllowIf("sched_setscheduler", 0, kAll, 0);
  rules.AllowIf("sched_setaffinity", 0, kAll, 0);
  for (const unsigned long command : kIoctls) {
    rules.AllowIf("ioctl", 1, kAll, command);
  }
  // A private umask (fs/credentials.h), no namespaces.
  rules.AllowIf("unshare", 0, ~uint64_t{0}, CLONE_FS);
  AddCommonRules(rules);
}

}  // namespace

RefusalCounter::RefusalCounter(UniqueFd notifications)
    : notifications_(std::move(notifications)) {
  if (!StartThread(
           "tracefs-refuse", [this] { Serve(); }, &thread_)
           .ok()) {
    notifications_.Reset();  // the kernel answers by itself
  }
}

RefusalCounter::~RefusalCounter() {
  stop_.Set();
  if (thread_.joinable()) thread_.join();
  // From now on the kernel answers by itself, with ENOSYS.
}

void RefusalCounter::Serve() {
  for (;;) {
    std::array<pollfd, 2> ready = {pollfd{notifications_.get(), POLLIN, 0},
                                   pollfd{stop_.get(), POLLIN, 0}};
    if (::poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) return;
    if (ready[1].revents != 0) return;
    if (ready[0].revents != 0) AnswerOne();
  }
}

// May itself make no call that is refused: nobody would answer it.
void RefusalCounter::AnswerOne() {
  // Larger than any kernel's structures, which grow; zeros are demanded.
  union {
    std::array<std::byte, 1024> room{};
    seccomp_notif request;
    seccomp_notif_resp response;
  };
  if (::ioctl(notifications_.get(), SECCOMP_IOCTL_NOTIF_RECV, room.data()) !=
      0) {
    return;  // the caller was killed
  }
  const int number = std::clamp(request.data.nr, 0, kCalls - 1);
  const uint64_t id = request.id;
  const uint64_t before = counts_[static_cast<size_t>(number)].fetch_add(1);
  room.fill(std::byte{0});
  response.id = id;
  response.error = -EPERM;
  ::ioctl(notifications_.get(), SECCOMP_IOCTL_NOTIF_SEND, room.data());

  if (before != 0) return;
  char* const name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number);
  Notify(NoticeId::kCallRefused, "the sandbox refused the system call " +
                                     std::string(name != nullptr ? name : "?") +
                                     " (" + std::to_string(number) +
                                     "); further ones are only counted");
  std::free(name);
}

std::string RefusalCounter::Text() const {
  std::string text;
  for (int i = 0; i < kCalls; ++i) {
    const uint64_t count = counts_[static_cast<size_t>(i)].load();
    if (count == 0) continue;
    char* const name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, i);
    AppendWord(name != nullptr ? name : std::to_string(i), ", ", &text);
    text += ' ' + std::to_string(count);
    std::free(name);
  }
  return text;
}

Result<SeccompResult> InstallSeccompFilter(const SeccompOptions& options) {
  SeccompResult result;
  if (kSanitized) {
    result.why = "a build with a sanitizer";
    return result;
  }
  // Level 5: the kernel can tell us of refused calls (5.0).
  const bool counted = seccomp_api_get() >= 5;
  Builder rules(counted ? SCMP_ACT_NOTIFY : SCMP_ACT_ERRNO(EPERM));
  AddRules(options, rules);
  if (const int error = rules.Load(); error != 0) {
    return Status::System(error, "sandbox: seccomp");
  }
  if (counted) {
    // Without it refused calls fail with ENOSYS.
    result.notifications = rules.TakeNotificationFd();
    if (!result.notifications) return Status::System(errno, "sandbox: seccomp");
  }
  result.installed = true;
  return result;
}

std::string SeccompVersion() {
  const scmp_version* version = seccomp_version();
  return "libseccomp " + std::to_string(version->major) + '.' +
         std::to_string(version->minor) + '.' + std::to_string(version->micro);
}

}  // namespace tracefs

#else  // !TRACEFS_HAVE_SECCOMP

namespace tracefs {

RefusalCounter::RefusalCounter(UniqueFd notifications)
    : notifications_(std::move(notifications)) {}
RefusalCounter::~RefusalCounter() = default;
void RefusalCounter::Serve() {}
std::string RefusalCounter::Text() const { return ""; }

Result<SeccompResult> InstallSeccompFilter(const SeccompOptions&) {
  SeccompResult result;
  result.why =
      kSanitized ? "a build with a sanitizer" : "a build without libseccomp";
  return result;
}

std::string SeccompVersion() { return "no (built without libseccomp)"; }

}  // namespace tracefs

#endif
