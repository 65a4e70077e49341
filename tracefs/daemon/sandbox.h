// Sandbox: what the daemon gives up once all that it needs is open.
//
// For root: namespaces of its own for mounts, network, IPC and host name; a
// root directory with nothing in it but a /proc that shows processes only;
// supplementary groups; all capabilities but those that passing operations
// through takes; the way to new privileges; core dumps and being traced. For
// an ordinary user: the last two. For both: looking into other processes
// (landlock.h), and all system calls but those of its work, where libseccomp is
// there (seccomp_filter.h).
//
// File handles (open_by_handle_at) lead to any file of a file system, not just
// to those below the source. Strictly shut in, the daemon goes without.
//
// A receiver keeps no capability at all, may turn into another user, and
// needs no /proc.
//
// What must come before: source, outputs, /dev/fuse, sockets, mount. What must
// come after: every thread, for a thread keeps the namespaces, the root and the
// capabilities it was made with. docs/security.md says what this is good for.
#pragma once

#include <memory>
#include <string>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/daemon/account.h"
#include "tracefs/daemon/seccomp_filter.h"

namespace tracefs {

// A /proc that is mounted nowhere: O_PATH, shows the processes of this pid
// namespace and nothing else where the kernel can do that (Linux 5.8 and root),
// is read-only in any case where a new mount is allowed, and is the machine's
// own /proc elsewhere.
Result<UniqueFd> OpenProc();

// What libfuse asks for the number of processors where it serves over io_uring,
// mounted nowhere.
Result<UniqueFd> OpenSys();

// Nothing is looked up by its name on entering: a mount that is not served yet
// may lie there.
struct SandboxOptions {
  int proc = -1;       // of OpenProc; becomes /proc if it is a mount of its own
  bool uring = false;  // FUSE over io_uring is to be used
  int sys = -1;        // of OpenSys; becomes /sys/devices/system
  // May open files by their handles. False takes libseccomp.
  bool file_handles = true;
  // tracefs-recv: serves what it has open and passes nothing through. It keeps
  // no capability, and fewer system calls.
  bool receiver = false;
  // Turns into this user, too; null: stays who it is.
  const Account* account = nullptr;
};

class Sandbox {
 public:
  // Shuts this process in. kSystem if a part of it cannot be had: the process
  // may then be half inside and should end.
  static Result<std::unique_ptr<Sandbox>> Enter(const SandboxOptions& options);

  // Once the rings of FUSE over io_uring are there: no others, and no changes
  // of these.
  Status RefuseMoreRings() const;

  // What was given up, on one line, for headers and `explain`.
  const std::string& description() const { return description_; }
  // System calls that were refused since, with counts: "socket 2, …". Empty
  // if none, or if they cannot be counted.
  std::string Refusals() const;

 private:
  Sandbox() = default;

  std::string description_;
  bool may_make_rings_ = false;
  std::unique_ptr<RefusalCounter> counter_;  // may be null
};

// Supplementary groups and CAP_SYS_RESOURCE: even a daemon outside a sandbox
// must not have them. Files would get groups that their makers are not in, and
// quota would not hold. After limits were raised, before the first thread.
Status DropAlways();

}  // namespace tracefs
