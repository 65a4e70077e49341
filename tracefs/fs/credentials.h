// Running system calls as the caller of a request, on the calling thread only.
//
// Objects are created as their creator: with the caller's fsuid, fsgid and
// umask, so that the backing file system itself decides owner, group, set-gid
// inheritance, default ACLs and quota, atomically. (Creating as root and
// changing the owner afterwards is a race and charges the wrong quota.) Only
// raw system calls are used: the wrappers of the C library change all threads.
//
// The state of a thread. AsCaller switches and does not switch back: the next
// request usually has the same caller, and then costs no system call. The same
// goes for the capabilities that override what a directory says of its names
// and a file of itself (kOverrides), and for the one that keeps set-id bits
// (CAP_FSETID). Between requests a worker therefore runs with the ids and umask
// of any earlier caller, and with or without these capabilities. So:
//  - calls that only look (lookup, stat, …) need no ids. But where the backing
//    file system asks a server (NFS, FUSE), that may look at the ids: there
//    every call is made as its caller (FileSystem::EnterWorker);
//  - calls that change names or what a file is (create, unlink, chmod, an open
//    for writing, …) are made with the rights of their caller
//    (callers_rights.h): what the kernel has checked may be older than the
//    directory or the file. Other opens have the daemon's (Reopen);
//  - calls that allocate blocks or clear set-id bits (write, fallocate,
//    truncate, O_TRUNC) want AsCaller(uid, gid), for the reserve that ext4
//    keeps for root and because a member of the file's group keeps a set-gid
//    bit;
//  - whatever may clear set-id bits, or has to keep them, says which:
//    AllowFsetid (a write, truncation), or SetGid (chmod, a creation with a
//    set-gid bit);
//  - what the daemon creates for itself on such a thread needs AsDaemon.
// Supplementary groups stay the daemon's (none) but for a call that fails
// without the caller's (callers_rights.h).
//
// A daemon without CAP_SETUID and CAP_SETGID serves its own user only: there
// ids stay as they are and only the umask is switched.
//
// The first switch makes the process undumpable, as any change of fsuid does
// (commit_creds): no core dump, and /proc/self belongs to root.
//
// Threads: every object here belongs to the thread that made it.
// Sources: setfsuid(2), capabilities(7), unshare(2); reference
// linux/kernel/sys.c, linux/security/commoncap.c (cap_task_fix_setuid).
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>

namespace tracefs {

// Capabilities as bits.
inline constexpr uint64_t kChown = uint64_t{1} << 0;        // CAP_CHOWN
inline constexpr uint64_t kDacOverride = uint64_t{1} << 1;  // CAP_DAC_OVERRIDE
inline constexpr uint64_t kFowner = uint64_t{1} << 3;       // CAP_FOWNER
inline constexpr uint64_t kFsetid = uint64_t{1} << 4;       // CAP_FSETID
inline constexpr uint64_t kSysAdmin = uint64_t{1} << 21;    // CAP_SYS_ADMIN
inline constexpr uint64_t kSetfcap = uint64_t{1} << 31;     // CAP_SETFCAP
// Those by which the daemon may do anything to any name and file.
// CAP_DAC_READ_SEARCH is not one of them: a look-up takes it.
inline constexpr uint64_t kOverrides =
    kChown | kDacOverride | kFowner | kSetfcap;

// The ids of an ordinary user and of his group.
inline constexpr uint32_t kNobody = 65534;

class ThreadCredentials {
 public:
  // This thread's. The first call takes the thread's umask (and working
  // directory) out of the process's with unshare(CLONE_FS) and reads what the
  // thread may do: capabilities given up later must be given up before.
  static ThreadCredentials& Current();

  ThreadCredentials(const ThreadCredentials&) = delete;
  ThreadCredentials& operator=(const ThreadCredentials&) = delete;

  // Makes this thread's file-system ids those given; no system call if they
  // are already. 0, or the errno the operation must fail with: EOVERFLOW for
  // a number that cannot be an id (the kernel's own answer), ENOMEM, EPERM.
  int Become(uint32_t uid, uint32_t gid) {
    if (uid == uid_ && gid == gid_) return 0;
    return SwitchIds(uid, gid);
  }

  // For work done on behalf of no particular user: makes this thread's user
  // nobody if it is root, to whom ext4 gives blocks that others must not have.
  // Otherwise the user is some caller, which is fine. One system call: its
  // success is only checked when it matters who the user is (Become).
  void BecomeOrdinary() {
    if (uid_ == 0) LeaveRoot();
  }

  // Makes this thread's umask `mask`; no system call if it is already.
  void SetUmask(mode_t mask) {
    if (mask != umask_) SwitchUmask(mask);
  }

  // The mode to pass to a creating call: `mode` itself, or, where the umask
  // cannot be private, `mode` with the umask applied (default ACLs are then
  // masked by it as well: tighter, never wider, than the caller asked for).
  mode_t CreationMode(mode_t mode) const {
    return private_umask_ ? mode : mode & ~umask_;
  }

  // Leaves this thread those of the daemon's overrides that are in `wanted`; no
  // system call if it has exactly these. Keeps errno.
  void AllowOverrides(uint64_t wanted) {
    if (wanted != overrides_) SwitchOverrides(wanted);
  }
  bool has_overrides() const { return overrides_ == kOverrides; }
  // With CAP_FSETID, or (`allow` is false) without it; no system call if it is
  // so already. Without it a write, truncation or BACKING_OPEN makes the
  // backing kernel clear set-user-id, set-group-id and file capabilities just
  // as for an unprivileged caller. With it a privileged caller's write keeps
  // them, and a creating call its set-gid bit. Keeps errno. No effect without
  // privilege: the thread lacks the capability anyway.
  void AllowFsetid(bool allow) {
    if (allow != fsetid_) SwitchFsetid(allow);
  }
  // Makes `groups` this thread's supplementary groups; none is the normal
  // state. 0 or an errno.
  int SetGroups(std::span<const gid_t> groups);

  // What the daemon started with, and all its capabilities.
  int BecomeDaemon();

  bool switches_ids() const { return switches_ids_; }
  bool private_umask() const { return private_umask_; }

 private:
  ThreadCredentials();
  int SwitchIds(uint32_t uid, uint32_t gid);
  void SwitchUmask(mode_t mask);
  void LeaveRoot();
  void SwitchOverrides(uint64_t wanted);
  void SwitchFsetid(bool allow);
  static void TakeBack();
  int ApplyEffective();

  bool switches_ids_ = false;
  bool private_umask_ = false;
  // The kernel takes the file capabilities away when fsuid stops being 0, and
  // SECBIT_NO_SETUID_FIXUP was refused: put them back by hand.
  bool restores_capabilities_ = false;
  uint32_t uid_ = 0;
  uint32_t gid_ = 0;
  mode_t umask_ = 0;
  uint32_t daemon_uid_ = 0;
  uint32_t daemon_gid_ = 0;
  mode_t daemon_umask_ = 0;
  uint64_t effective_ = 0;           // capability bits of the daemon
  uint64_t overrides_ = kOverrides;  // those of them that are in effect
  uint64_t permitted_ = 0;
  uint64_t inheritable_ = 0;
  bool fsetid_ = true;  // CAP_FSETID is in effect, if the daemon has it
};

// Switches this thread to a caller. Check error() before the system call.
class AsCaller {
 public:
  AsCaller(uint32_t uid, uint32_t gid)
      : credentials_(ThreadCredentials::Current()),
        error_(credentials_.Become(uid, gid)) {}
  AsCaller(uint32_t uid, uint32_t gid, mode_t umask) : AsCaller(uid, gid) {
    credentials_.SetUmask(umask);
  }
  // Does nothing: see "The state of a thread" above.
  ~AsCaller() = default;
  AsCaller(const AsCaller&) = delete;
  AsCaller& operator=(const AsCaller&) = delete;

  int error() const { return error_; }
  mode_t Mode(mode_t mode) const { return credentials_.CreationMode(mode); }

 private:
  ThreadCredentials& credentials_;
  const int error_;
};

// Switches this thread back to what the daemon is.
class AsDaemon {
 public:
  AsDaemon() : error_(ThreadCredentials::Current().BecomeDaemon()) {}
  AsDaemon(const AsDaemon&) = delete;
  AsDaemon& operator=(const AsDaemon&) = delete;

  int error() const { return error_; }

 private:
  const int error_;
};

}  // namespace tracefs
