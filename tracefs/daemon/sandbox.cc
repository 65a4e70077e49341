// Entering the sandbox (sandbox.h). capabilities(7), namespaces(7),
// pivot_root(2).
#include "tracefs/daemon/sandbox.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/securebits.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "tracefs/base/kernel_version.h"
#include "tracefs/base/sanitizers.h"
#include "tracefs/daemon/capabilities.h"
#include "tracefs/daemon/landlock.h"
#include "tracefs/daemon/ring_limits.h"

namespace tracefs {
namespace {

constexpr uint64_t kNoTrust =
    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;

// What passing operations through takes.
constexpr uint64_t kKept =
    CapabilityBit(CAP_CHOWN) | CapabilityBit(CAP_DAC_OVERRIDE) |
    // open_by_handle_at, linkat with an empty path
    CapabilityBit(CAP_DAC_READ_SEARCH) | CapabilityBit(CAP_FOWNER) |
    // set-gid bits that a creator asked for
    CapabilityBit(CAP_FSETID) | CapabilityBit(CAP_MKNOD) |
    // security.capability
    CapabilityBit(CAP_SETFCAP) |
    // fsuid and fsgid
    CapabilityBit(CAP_SETGID) | CapabilityBit(CAP_SETUID) |
    CapabilityBit(CAP_LINUX_IMMUTABLE) |
    // FUSE passthrough, trusted.* attributes
    CapabilityBit(CAP_SYS_ADMIN);

Status Failed(const char* what) {
  return Status::System(errno, std::string("sandbox: ") + what +
                                   " (--sandbox off goes without, see " +
                                   program_invocation_short_name + "(1))");
}

bool Restrict(int mount, uint64_t attributes) {
  mount_attr wanted{};
  wanted.attr_set = attributes;
  return ::mount_setattr(mount, "", AT_EMPTY_PATH, &wanted, sizeof wanted) == 0;
}

// A new mount of `type` that is nowhere yet.
UniqueFd NewMount(const char* type, const char* key, const char* value) {
  const UniqueFd context(::fsopen(type, FSOPEN_CLOEXEC));
  if (!context ||
      ::fsconfig(context.get(), FSCONFIG_SET_STRING, key, value, 0) != 0 ||
      ::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) !=
          0) {
    return {};
  }
  return UniqueFd(::fsmount(context.get(), FSMOUNT_CLOEXEC, kNoTrust));
}

// A copy of the mount at `path`, read-only, that is nowhere yet. In a user
// namespace of one's own what is mounted below cannot be left out.
UniqueFd CloneReadOnly(const char* path) {
  UniqueFd fd(::open_tree(AT_FDCWD, path, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  if (!fd) {
    fd.Reset(::open_tree(AT_FDCWD, path,
                         OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE));
  }
  if (fd && !Restrict(fd.get(), kNoTrust | MOUNT_ATTR_RDONLY)) fd.Reset();
  return fd;
}

bool MoveTo(int mount, const char* path) {
  return ::move_mount(mount, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH) == 0;
}

bool IsOnlyThread() {
  std::error_code error;
  int threads = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator("/proc/self/task", error)) {
    ++threads;
  }
  // Some sanitizers have a thread of their own.
  return threads == 1 || kSanitized;
}

// Takes this process out of the machine's namespaces and file systems.
Status LeaveMachine(const SandboxOptions& options) {
  if (::unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) !=
      0) {
    return Failed("namespaces");
  }
  // What we do to our copies of the mounts stays with us.
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) {
    return Failed("private mounts");
  }
  const bool sys = options.sys >= 0;
  const UniqueFd root = NewMount("tmpfs", "mode", "0555");
  if (!root) return Failed("empty file system");
  ::mkdirat(root.get(), "proc", 0555);
  if (sys) {
    for (const char* name : {"sys", "sys/devices", "sys/devices/system"}) {
      ::mkdirat(root.get(), name, 0555);
    }
  }
  // pivot_root(2), "pivot_root(".", ".")": the old root ends up on the new
  // one, from where it is taken away with all that is mounted in it, our own
  // file system included: its last mount must be the one that users see.
  if (!MoveTo(root.get(), "/") || ::fchdir(root.get()) != 0 ||
      ::syscall(SYS_pivot_root, ".", ".") != 0 ||
      ::umount2(".", MNT_DETACH) != 0 || ::chdir("/") != 0) {
    return Failed("empty root directory");
  }
  if ((options.proc >= 0 && !MoveTo(options.proc, "/proc")) ||
      (sys && !MoveTo(options.sys, "/sys/devices/system")) ||
      !Restrict(root.get(), kNoTrust | MOUNT_ATTR_RDONLY)) {
    return Failed("root directory");
  }
  return Status::Ok();
}

// With such a limit a process sets its own priority without a capability.
// Raising it takes CAP_SYS_RESOURCE.
bool AllowAnyPriority() {
  const rlimit any = {40, 40};
  return ::setrlimit(RLIMIT_NICE, &any) == 0;
}

// Capabilities that are still needed, as bits.
uint64_t KeptCapabilities(const SandboxOptions& options) {
  // The leak checker stops its own process.
  constexpr uint64_t kLeakChecker =
      kSanitized ? CapabilityBit(CAP_SYS_PTRACE) : 0;
  if (options.receiver) return kLeakChecker;
  uint64_t kept = kKept | kLeakChecker;
  // Workers set their own priority.
  if (!AllowAnyPriority()) kept |= CapabilityBit(CAP_SYS_NICE);
  // Subscribing to process events; since 6.6 anybody may.
  if (!IsKernelAtLeast(6, 6)) kept |= CapabilityBit(CAP_NET_ADMIN);
  return kept;
}

}  // namespace

Result<UniqueFd> OpenProc() {
  UniqueFd fd = NewMount("proc", "subset", "pid");
  if (fd && !Restrict(fd.get(), MOUNT_ATTR_RDONLY)) fd.Reset();
  if (!fd) fd = CloneReadOnly("/proc");
  if (!fd) fd.Reset(::open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return Status::System(errno, "/proc");
  return fd;
}

Result<UniqueFd> OpenSys() {
  // It makes one queue for each processor that there may ever be, and the
  // kernel waits for all of them.
  UniqueFd fd = CloneReadOnly("/sys/devices/system");
  if (!fd) return Failed("/sys/devices/system");
  return fd;
}

Status DropAlways() {
  // In an ordinary user's own user namespace nobody may give them up, and
  // nobody but he works in the mount.
  if (HasCapability(CAP_SETGID) && ::setgroups(0, nullptr) != 0 &&
      errno != EPERM) {
    return Status::System(errno, "setgroups");
  }
  if (HasCapability(CAP_SETPCAP) && HasCapability(CAP_SYS_RESOURCE)) {
    (void)AllowAnyPriority();
    return LimitCapabilities(~CapabilityBit(CAP_SYS_RESOURCE));
  }
  return Status::Ok();
}

Result<std::unique_ptr<Sandbox>> Sandbox::Enter(const SandboxOptions& options) {
  if (!IsOnlyThread()) {
    return Status::System(EBUSY, "sandbox: there are threads already");
  }
  std::unique_ptr<Sandbox> sandbox(new Sandbox);
  if (HasCapability(CAP_SYS_ADMIN)) {
    if (Status s = LeaveMachine(options); !s.ok()) return s;
    // Workers change their fsuid and keep their capabilities; no program gets
    // any from the mere user id 0.
    if (::prctl(PR_SET_SECUREBITS,
                SECBIT_NO_SETUID_FIXUP | SECBIT_NOROOT | SECBIT_NOROOT_LOCKED |
                    SECBIT_NO_CAP_AMBIENT_RAISE |
                    SECBIT_NO_CAP_AMBIENT_RAISE_LOCKED) != 0) {
      return Failed("securebits");
    }
    sandbox->description_ = "namespaces mount net ipc uts; empty root; ";
  }
  if (options.account != nullptr) {
    if (Status s = Become(*options.account); !s.ok()) {
      return s.Prefixed("sandbox");
    }
    sandbox->description_ +=
        "user " + std::to_string(options.account->uid) + "; ";
  } else if (options.receiver && HasCapability(CAP_SETGID) &&
             ::setgroups(0, nullptr) != 0) {
    return Failed("groups");
  }
  // Without CAP_SETPCAP there is none that could be given up for good.
  if (HasCapability(CAP_SETPCAP)) {
    if (Status s = LimitCapabilities(KeptCapabilities(options)); !s.ok()) {
      return s;
    }
    const std::string names = CapabilityNames(EffectiveCapabilities());
    sandbox->description_ +=
        "capabilities " + (names.empty() ? "none" : names) + "; ";
  }
  const rlimit none = {0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  if (!kSanitized) ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    return Failed("no_new_privs");
  }
  sandbox->description_ += "no_new_privs; " + EnterLandlockDomain() + "; ";
  Result<SeccompResult> seccomp =
      InstallSeccompFilter({.uring = options.uring,
                            .receiver = options.receiver,
                            .file_handles = options.file_handles});
  if (!seccomp.ok()) return seccomp.status();
  if (!options.file_handles) {
    if (!seccomp->installed && !kSanitized) {
      return Status::Invalid("sandbox: strict needs " + seccomp->why);
    }
    sandbox->description_ += "no file handles; ";
  }
  sandbox->description_ +=
      seccomp->installed ? "seccomp" : "no seccomp: " + seccomp->why;
  sandbox->may_make_rings_ = seccomp->installed && options.uring;
  if (seccomp->notifications) {
    sandbox->counter_ =
        std::make_unique<RefusalCounter>(std::move(seccomp->notifications));
  }
  return sandbox;
}

Status Sandbox::RefuseMoreRings() const {
  if (!may_make_rings_) return Status::Ok();
  const int error = tracefs::RefuseMoreRings();
  return error == 0 ? Status::Ok() : Status::System(error, "sandbox: rings");
}

std::string Sandbox::Refusals() const {
  return counter_ != nullptr ? counter_->Text() : "";
}

}  // namespace tracefs
