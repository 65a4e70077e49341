// What is looked at (doctor.h). reference for versions: the kernel's
// Documentation/filesystems/fuse and libfuse's ChangeLog.
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include "tracefs/base/kernel_version.h"
#include "tracefs/broker/spec.h"
#include "tracefs/daemon/capabilities.h"
#include "tracefs/daemon/seccomp_filter.h"
#include "tracefs/fs/compact_handle.h"
#include "tracefs/fs/fuse_api.h"
#include "tracefs/mount/doctor.h"
#include "tracefs/mount/kernel_promises.h"
#include "tracefs/mount/session.h"
#include "tracefs/process/proc_connector.h"

namespace tracefs {
namespace {

using State = Finding::State;
using RemedyKind = Remedy::Kind;

// What a mount of many files asks for.
constexpr uint64_t kGoodFdLimit = 65536;

std::optional<std::string> ReadLine(const Machine& machine,
                                    const std::string& path) {
  std::ifstream in(machine.root + path);
  std::string line;
  if (!std::getline(in, line)) return std::nullopt;
  return line;
}

bool Has(const Machine& machine, int capability) {
  return (machine.capabilities & CapabilityBit(capability)) != 0;
}

std::string ErrorText(int error) { return std::strerror(error); }

Finding CheckKernel(const Machine& machine) {
  Finding f;
  f.subject = "kernel";
  f.found = "Linux " + machine.kernel_release;
  const auto version = [](int major, int minor) {
    return "Linux " + std::to_string(major) + '.' + std::to_string(minor);
  };
  const std::string promised = version(kPromisedMajor, kPromisedMinor);
  if (!IsKernelAtLeast(machine.kernel_release, kOldestMajor, kOldestMinor)) {
    f.state = State::kMissing;
    f.consequence = "no sandbox and no private copy of the source";
    f.advice = "use " + promised + " or newer; " +
               version(kOldestMajor, kOldestMinor) +
               " is the oldest that works at all";
  } else if (std::string lacking = KernelLacks(machine.kernel_release);
             !lacking.empty()) {
    f.state = State::kLimited;
    f.consequence = std::move(lacking);
    f.advice =
        IsKernelAtLeast(machine.kernel_release, kPromisedMajor, kPromisedMinor)
            ? "nothing that is promised is missing; newer kernels have "
              "this, too"
            : "use " + promised +
                  " or newer, on which all holds that is promised of "
                  "security and transparency";
  }
  return f;
}

Finding CheckLibfuse(const Machine& machine) {
  Finding f;
  f.subject = "libfuse";
  f.found = machine.libfuse_package +
            (machine.libfuse_has_uring ? ", with" : ", without") + " io_uring";
  f.advice = "run scripts/setup, which gets a newer one, and build again";
  if (machine.libfuse_version < 317) {
    f.state = State::kLimited;
    f.consequence =
        "no passthrough, no io_uring, a GETXATTR request with every write";
  } else if (machine.libfuse_version == 318 &&
             machine.libfuse_package < "3.18.3") {
    f.state = State::kLimited;
    f.consequence =
        "it does not say when a write is to clear set-user-id: use no "
        "set-user-id programs in the mount";
  } else if (!machine.libfuse_has_uring) {
    f.state = State::kLimited;
    f.consequence = "requests travel over /dev/fuse: about twice the time each";
  }
  return f;
}

Finding CheckDevice(const Machine& machine) {
  Finding f;
  f.subject = "/dev/fuse";
  const std::string path = machine.root + "/dev/fuse";
  struct stat st;
  if (::stat(path.c_str(), &st) != 0) {
    f.state = State::kMissing;
    f.found = ErrorText(errno);
    f.consequence = "nothing can be mounted";
    f.advice =
        "modprobe fuse; in a container, hand the device in (docker: --device "
        "/dev/fuse)";
    return f;
  }
  if (::access(path.c_str(), R_OK | W_OK) != 0) {
    f.state = State::kMissing;
    f.found = ErrorText(errno);
    f.consequence = "this user cannot mount, not with fusermount3 either";
    f.advice =
        "as root: chmod 666 /dev/fuse, as udev's rules of most systems do";
  } else if ((st.st_mode & 0006) != 0006) {
    f.state = State::kLimited;
    f.found = "can be opened by some users only";
    f.consequence = "other users cannot mount";
    f.advice = "to let them: chmod 666 /dev/fuse, and a udev rule that does so";
  } else {
    f.found = "can be opened by everybody";
  }
  return f;
}

Finding CheckPrivilege(const Machine& machine) {
  Finding f;
  f.subject = "privilege";
  uint64_t lacking = 0;
  for (const int capability :
       {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH, CAP_FOWNER,
        CAP_FSETID, CAP_MKNOD, CAP_SETFCAP, CAP_SETGID, CAP_SETUID, CAP_SETPCAP,
        CAP_LINUX_IMMUTABLE, CAP_SYS_ADMIN}) {
    if (!Has(machine, capability)) lacking |= CapabilityBit(capability);
  }
  if (lacking == 0) {
    f.found = "root, with all capabilities that are used";
  } else if (!Has(machine, CAP_SYS_ADMIN)) {
    f.state = State::kLimited;
    f.found = machine.is_root ? "root without CAP_SYS_ADMIN" : "ordinary user";
    f.consequence =
        "mounts by fusermount3: seen by this user only, everything happens as "
        "this user, no passthrough, no sandbox but the system call filter";
    f.advice = "mount as root";
  } else {
    f.state = State::kLimited;
    f.found = "capabilities missing: " + CapabilityNames(lacking);
    f.consequence = "operations that need them fail, whoever asks for them";
    f.advice = "give them to this container or service";
  }
  return f;
}

Finding CheckPassthrough(const Machine& machine) {
  Finding f;
  f.subject = "FUSE passthrough";
  const bool kernel = IsKernelAtLeast(machine.kernel_release, 6, 9);
  const bool library = machine.libfuse_version >= 317;
  if (kernel && library && Has(machine, CAP_SYS_ADMIN)) {
    f.found = "to be expected of this kernel (6.9 or newer)";
    return f;
  }
  f.state = State::kLimited;
  f.found = !kernel    ? "not in this kernel"
            : !library ? "not in this libfuse"
                       : "not without CAP_SYS_ADMIN";
  f.consequence = "reads and writes that nobody traces go through the daemon";
  f.advice = !kernel    ? "use Linux 6.9 or newer"
             : !library ? "run scripts/setup and build again"
                        : "mount as root";
  return f;
}

// Whether another daemon could go on with what a dead one had taken: the kernel
// has to send it again (FUSE_NOTIFY_RESEND).
Finding CheckSurvival(const Machine& machine) {
  Finding f;
  f.subject = "survival";
  const bool kernel = IsKernelAtLeast(machine.kernel_release, 6, 9);
  if (kernel && machine.is_root && Has(machine, CAP_SYS_ADMIN)) {
    f.found = "a mount with --survive yes outlives its daemon";
    return f;
  }
  f.state = State::kLimited;
  f.found = kernel ? "not without root" : "not in this kernel";
  f.consequence = "a mount ends with its daemon; --survive yes is refused";
  f.advice = kernel ? "mount as root" : "use Linux 6.9 or newer";
  return f;
}

// Where a setting of the module is kept for the next boot.
Remedy UringAtBoot(const Machine& machine) {
  // A module that was loaded has this file, one that is part of the kernel has
  // not, and its options are read from the kernel's command line only.
  if (machine.Has("/sys/module/fuse/initstate")) {
    return {RemedyKind::kNextBoot, "/etc/modprobe.d/tracefs.conf",
            "options fuse enable_uring=1"};
  }
  return {RemedyKind::kNextBoot, "/etc/tmpfiles.d/tracefs.conf",
          "w /sys/module/fuse/parameters/enable_uring - - - - Y"};
}

Finding CheckUring(const Machine& machine) {
  constexpr char kSwitch[] = "/sys/module/fuse/parameters/enable_uring";
  constexpr char kDisabled[] = "/proc/sys/kernel/io_uring_disabled";
  Finding f;
  f.subject = "FUSE over io_uring";
  f.consequence = "requests travel over /dev/fuse: about twice the time each";
  const std::optional<std::string> value = ReadLine(machine, kSwitch);
  const std::string disabled = ReadLine(machine, kDisabled).value_or("0");
  f.state = State::kLimited;
  if (!value) {
    const bool loaded = machine.Has("/sys/module/fuse");
    f.found = loaded ? "not in this kernel" : "the module fuse is not loaded";
    f.advice = loaded ? "use Linux 6.14 or newer" : "modprobe fuse";
    return f;
  }
  if (*value != "Y") {
    f.found = "the kernel's switch is off";
    f.advice = std::string("echo Y > ") + kSwitch +
               ", and the kernel option fuse.enable_uring=1 for the next boot";
    f.remedies = {{RemedyKind::kNow, kSwitch, "Y"}, UringAtBoot(machine)};
  }
  if (disabled == "2" || (disabled == "1" && !Has(machine, CAP_SYS_ADMIN))) {
    f.found = "io_uring is switched off on this machine";
    f.advice = std::string("echo 0 > ") + kDisabled;
    // That was set on purpose: not ours to undo.
    f.remedies.clear();
  } else if (*value == "Y") {
    f.state = machine.libfuse_has_uring ? State::kOk : State::kLimited;
    f.found = machine.libfuse_has_uring ? "on" : "not in this libfuse";
    f.advice = "run scripts/setup and build again";
  }
  return f;
}

Finding CheckRequestSize(const Machine& machine) {
  constexpr char kLimit[] = "/proc/sys/fs/fuse/max_pages_limit";
  constexpr unsigned long kPages = 256;
  Finding f;
  f.subject = "request size";
  const std::optional<std::string> value = ReadLine(machine, kLimit);
  const unsigned long pages =
      value ? std::strtoul(value->c_str(), nullptr, 10) : kPages;
  f.found = "at most " + std::to_string(pages * 4) + " KiB";
  if (pages >= kPages) return f;
  f.state = State::kLimited;
  f.consequence = "large reads and writes take more requests";
  f.advice = "sysctl fs.fuse.max_pages_limit=256";
  f.remedies = {
      {RemedyKind::kNow, kLimit, "256"},
      {RemedyKind::kNextBoot, "/etc/sysctl.d/90-tracefs.conf",
       "fs.fuse.max_pages_limit = 256"},
  };
  return f;
}

Finding CheckTimeout(const Machine& machine) {
  Finding f;
  f.subject = "request timeout";
  const std::string value =
      ReadLine(machine, "/proc/sys/fs/fuse/default_request_timeout")
          .value_or("0");
  const std::string most =
      ReadLine(machine, "/proc/sys/fs/fuse/max_request_timeout").value_or("0");
  if (value == "0" && most == "0") {
    f.found = "none: the kernel waits for slow storage";
    return f;
  }
  f.state = State::kLimited;
  f.found = (value != "0" ? value : most) + "s";
  f.consequence =
      "the kernel ends the mount if one operation on slow storage takes longer";
  f.advice =
      "sysctl fs.fuse.default_request_timeout=0 fs.fuse.max_request_timeout=0";
  return f;
}

Finding CheckDescriptors(const Machine& machine) {
  Finding f;
  f.subject = "open files";
  f.found = "at most " + std::to_string(machine.fd_limit) + " in the daemon";
  if (machine.fd_limit >= kGoodFdLimit) return f;
  const std::string good = std::to_string(kGoodFdLimit);
  f.state = State::kLimited;
  f.consequence =
      "users together can hold about half as many files open at a time; then "
      "open fails with EMFILE";
  f.advice = "raise the hard limit: ulimit -Hn " + good +
             ", LimitNOFILE=" + good +
             " in a service, or a line in /etc/security/limits.d for logins";
  f.remedies = {{RemedyKind::kNextBoot, "/etc/security/limits.d/tracefs.conf",
                 "root hard nofile " + good}};
  return f;
}

Finding CheckUserMounts(const Machine& machine) {
  Finding f;
  f.subject = "ordinary users";
  struct stat st;
  std::string helper;
  for (const char* path : {"/usr/bin/fusermount3", "/bin/fusermount3"}) {
    if (::stat((machine.root + path).c_str(), &st) != 0) continue;
    helper = path;
    break;
  }
  if (helper.empty()) {
    f.state = State::kLimited;
    f.found = "no fusermount3";
    f.consequence = "only root can mount";
    f.advice = "install the package fuse3";
    return f;
  }
  if (st.st_uid != 0 || (st.st_mode & S_ISUID) == 0) {
    f.state = State::kLimited;
    f.found = helper + " is not set-user-id root";
    f.consequence = "only root can mount";
    f.advice = "chown root " + helper + " && chmod u+s " + helper;
    return f;
  }
  std::ifstream in(machine.root + "/etc/fuse.conf");
  bool shared = false;
  for (std::string line; std::getline(in, line);) {
    shared |= line.rfind("user_allow_other", 0) == 0;
  }
  f.found = helper;
  if (shared) {
    f.found += ", user_allow_other";
    return f;
  }
  f.state = State::kLimited;
  f.consequence =
      "what an ordinary user mounts nobody else can see, root neither";
  // Whether users may do that to each other is for the operator to decide.
  f.advice = "if that is wanted: user_allow_other in /etc/fuse.conf";
  return f;
}

Finding CheckProcessEvents(const Machine& machine) {
  Finding f;
  f.subject = "process events";
  const Result<std::unique_ptr<ProcConnector>> opened = ProcConnector::Open();
  const bool allowed = Has(machine, CAP_NET_ADMIN) ||
                       IsKernelAtLeast(machine.kernel_release, 6, 6);
  if (opened.ok() && allowed) {
    f.found = "the kernel tells of exec and exit";
    return f;
  }
  f.state = State::kLimited;
  f.found = opened.ok() ? "not without CAP_NET_ADMIN before Linux 6.6"
                        : opened.status().message();
  f.consequence =
      "who a caller is, is read from /proc again every 50 ms where a filter or "
      "flag asks for it";
  f.advice =
      "mount as root, outside containers, on a kernel with CONFIG_PROC_EVENTS";
  return f;
}

Finding CheckSandbox(const Machine& machine) {
  Finding f;
  f.subject = "sandbox";
  for (const char* name : {"mnt", "net", "ipc", "uts"}) {
    if (machine.Has(std::string("/proc/self/ns/") + name)) continue;
    f.state = State::kMissing;
    f.found = std::string("this kernel has no ") + name + " namespaces";
    f.consequence = "the default --sandbox on fails";
    f.advice = "mount with --sandbox off, or use a kernel with them";
    return f;
  }
  const std::string actions =
      ReadLine(machine, "/proc/sys/kernel/seccomp/actions_avail").value_or("");
  const std::string library = SeccompVersion();
  f.found = "namespaces, " + library;
  if (library.rfind("libseccomp", 0) != 0) {
    f.state = State::kLimited;
    f.found = "namespaces; system call filter: " + library;
    f.consequence = "a broken daemon could still make any system call";
    f.advice = "install libseccomp-dev and build again";
  } else if (actions.empty()) {
    f.state = State::kLimited;
    f.found = "namespaces; this kernel has no seccomp";
    f.consequence = "a broken daemon could still make any system call";
    f.advice = "use a kernel with CONFIG_SECCOMP_FILTER";
  } else if (actions.find("user_notif") == std::string::npos) {
    f.state = State::kLimited;
    f.found += "; this kernel cannot report refused calls";
    f.consequence = "refused system calls are not counted";
    f.advice = "use Linux 5.0 or newer";
  }
  return f;
}

Finding CheckTracepoints(const Machine& machine) {
  Finding f;
  f.subject = "kernel tracepoints";
  for (const char* path :
       {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}) {
    if (!machine.Has(std::string(path) + "/events/fuse")) continue;
    f.found = std::string(path) + "/events/fuse";
    return f;
  }
  f.state = State::kLimited;
  const bool mounted = machine.Has("/sys/kernel/tracing/events");
  f.found = mounted ? "this kernel has none of FUSE"
                    : "tracefs (the kernel's) is not mounted";
  f.consequence =
      "a trace cannot be checked against the kernel's own count of requests";
  f.advice = mounted ? "only tests need it"
                     : "mount -t tracefs nodev /sys/kernel/tracing; only tests "
                       "need it";
  return f;
}

// --- what depends on the source

Finding CheckClone(const Source& source) {
  Finding f;
  f.subject = "source: private copy of the mount";
  if (source.cloned) {
    f.found = "open_tree works";
    return f;
  }
  f.state = State::kLimited;
  f.found = "open_tree is not allowed";
  f.consequence =
      "what is mounted inside the source later is passed through as well; do "
      "not mount over the source itself";
  f.advice = "mount as root (CAP_SYS_ADMIN)";
  return f;
}

Finding CheckHandles(const Machine& machine, const Source& source) {
  Finding f;
  f.subject = "source: file handles";
  const CompactHandle handle = CompactHandle::Of(source.fd.get(), "");
  const UniqueFd root(
      ::openat(source.fd.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (handle && handle.Open(root.get())) {
    f.found = "can be opened";
    return f;
  }
  f.found = handle ? "cannot be opened: " + ErrorText(errno)
                   : "this file system has none";
  f.state = State::kLimited;
  f.consequence =
      "files that the kernel remembers beyond half the limit of open files are "
      "opened again by their names, which takes longer and fails where others "
      "move them below the mount";
  f.advice = handle && !Has(machine, CAP_DAC_READ_SEARCH)
                 ? "mount as root (CAP_DAC_READ_SEARCH)"
                 : "raise the limit of open files";
  return f;
}

struct BackingKind {
  unsigned long magic;
  const char* name;
  const char* consequence;  // null: all is well
};
constexpr char kNetwork[] =
    "what other machines change shows when the kernel's timeouts end "
    "(--visibility exact: at once)";
constexpr std::array kBackingKinds = {
    BackingKind{EXT4_SUPER_MAGIC, "ext4", nullptr},
    BackingKind{XFS_SUPER_MAGIC, "xfs", nullptr},
    BackingKind{TMPFS_MAGIC, "tmpfs", nullptr},
    BackingKind{BTRFS_SUPER_MAGIC, "btrfs",
                "subvolumes are other file systems with numbers of their own"},
    BackingKind{OVERLAYFS_SUPER_MAGIC, "overlayfs",
                "nothing with passthrough of its own can be mounted on top"},
    BackingKind{NFS_SUPER_MAGIC, "nfs", kNetwork},
    BackingKind{SMB2_SUPER_MAGIC, "smb", kNetwork},
    BackingKind{CIFS_SUPER_MAGIC, "cifs", kNetwork},
    BackingKind{FUSE_SUPER_MAGIC, "fuse", kNetwork},
};

Finding CheckFileSystem(const Source& source) {
  Finding f;
  f.subject = "source: file system";
  struct statfs st;
  if (::fstatfs(source.fd.get(), &st) != 0) {
    f.state = State::kMissing;
    f.found = ErrorText(errno);
    f.consequence = "it cannot be read";
    f.advice = "see to that first";
    return f;
  }
  f.found = "of a kind that was not tried";
  for (const BackingKind& kind : kBackingKinds) {
    if (kind.magic != static_cast<unsigned long>(st.f_type)) continue;
    f.found = kind.name;
    if (kind.consequence == nullptr) return f;
    f.consequence = kind.consequence;
  }
  if (f.consequence.empty()) f.consequence = "there may be surprises";
  f.state = State::kLimited;
  f.advice = "nothing, if that will do";
  return f;
}

}  // namespace

bool Machine::Has(const std::string& path) const {
  struct stat st;
  return ::stat((root + path).c_str(), &st) == 0;
}

Machine Machine::This() {
  Machine machine;
  machine.kernel_release = KernelRelease();
  machine.capabilities = EffectiveCapabilities();
  machine.is_root = ::geteuid() == 0;
  machine.libfuse_version = fuse_version();
  machine.libfuse_package = fuse_pkgversion();
  machine.libfuse_has_uring = TRACEFS_HAVE_FUSE_URING != 0;
  machine.nats_library = BrokerLibrary(BrokerKind::kNats);
  machine.kafka_library = BrokerLibrary(BrokerKind::kKafka);
  rlimit limit;
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    machine.fd_limit = limit.rlim_max;
  }
  return machine;
}

std::vector<Finding> Examine(const Machine& machine,
                             const std::string& source_path) {
  std::vector<Finding> findings = {
      CheckKernel(machine),      CheckLibfuse(machine),
      CheckDevice(machine),      CheckPrivilege(machine),
      CheckUserMounts(machine),  CheckPassthrough(machine),
      CheckSurvival(machine),    CheckUring(machine),
      CheckRequestSize(machine), CheckTimeout(machine),
      CheckDescriptors(machine), CheckProcessEvents(machine),
      CheckSandbox(machine),     CheckTracepoints(machine)};
  for (Finding& finding : ExamineInstallation(machine)) {
    findings.push_back(std::move(finding));
  }
  if (source_path.empty()) return findings;
  const Result<Source> source = OpenSource(source_path);
  if (!source.ok()) {
    findings.push_back({State::kMissing,
                        "source",
                        source.status().message(),
                        "it cannot be traced",
                        "name a directory that this user can open",
                        {}});
    return findings;
  }
  findings.push_back(CheckFileSystem(*source));
  findings.push_back(CheckClone(*source));
  findings.push_back(CheckHandles(machine, *source));
  return findings;
}

}  // namespace tracefs
