// Watchdog: a small process beside the daemon that takes the mount away when
// the daemon is gone, so that users get an error and not a dead directory;
// or, after StayShut, leaves the dead mount where it is.
//
// It is also the daemon's hand in the namespaces it was started in: once the
// daemon has shut itself into its sandbox, only this process can unmount, and
// it makes the output files that are asked for later, it opens tracepoints
// for who asks for system calls or processes, and on a hang-up it runs the one
// command that takes the config anew. It does nothing else,
// and it does not take the daemon's word for what the mount is: it looks at
// the mount itself, once, and touches no other.
//
// The child holds no descriptor but a socket to the daemon, a pidfd of the
// daemon and O_PATH descriptors of directories: never /dev/fuse, a trace, or
// anybody's terminal. It has a session of its own and ignores the signals that
// end a daemon: a signal for the whole process group ends the daemon, and the
// end of the daemon ends the child.
//
// Where mount(2) is not allowed it works through fusermount3, as the mount did.
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/daemon/log.h"
#include "tracefs/daemon/tracepoints.h"

namespace tracefs {

class Watchdog {
 public:
  // Makes the process. To be called while there is one thread, before anything
  // is opened that must not outlive the daemon. kSystem if there is no room
  // for another process.
  static Result<std::unique_ptr<Watchdog>> Start();
  // Ends the process, which first takes away what is left of the mount.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // `directory`, and what is below it, may be named in MakeFile. Only before
  // Guard.
  Status AllowFilesBelow(const std::string& directory);

  // Where the end of the daemon is told, if it dies. Only before Guard.
  Status UseLog(const LogPlace& place);
  // A socket of that log, connected anew. Threads: any.
  Result<UniqueFd> ConnectLog();

  // Tracepoints of the kernel, which a sandboxed daemon may not open:
  // OpenTracepointsOn, without this process. Threads: any.
  Result<tracefs::OpenTracepoints> OpenTracepoints(TracepointUse use,
                                                   int processor);

  // A process that may see what others run (looker.h): a socket to it.
  Result<UniqueFd> StartLooker();

  // What Reload is to do: run `program MOUNT_POINT reload`. Absolute. Only
  // before Guard.
  Status UseReload(const std::string& program);
  // Has that done, in a process of its own that nobody waits for; its failure
  // is told in the log.
  Status Reload();

  // Our file system is mounted at `mount_point` (absolute, no symlinks) now,
  // and served from now on or later: nothing is asked of it. Once.
  Status Guard(const std::string& mount_point);

  // From now on the mount goes only by Unmount, or by somebody else's hand:
  // whatever becomes of the daemon, what lies below stays covered. For good.
  // Threads: any.
  Status StayShut();

  // Unmounts what Guard was told of, if it is still there: `lazy` as in
  // umount -l. kSystem with EBUSY while somebody uses it. Ok if it is gone.
  Status Unmount(bool lazy);

  // Makes a new file, 0600, that a sandboxed daemon cannot reach, and opens it
  // for writing; `path` is absolute. Fails as open(2) with O_CREAT, O_EXCL and
  // O_NOFOLLOW does, with EACCES outside the directories allowed, and with
  // ELOOP inside the mount itself.
  Result<UniqueFd> MakeFile(const std::string& path);

  pid_t pid() const { return child_; }

 private:
  Watchdog(pid_t child, UniqueFd socket)
      : child_(child), socket_(std::move(socket)) {}
  // Asks and waits for the answer: an errno value, and a descriptor if `fd` is
  // not null and there is one.
  Status Ask(char request, const std::string& text, UniqueFd* fd);
  // The same with all descriptors, and the text of the answer.
  Status Ask(char request, const std::string& text,
             std::vector<UniqueFd>* files, std::string* said);

  const pid_t child_;
  std::mutex mu_;  // one question at a time
  const UniqueFd socket_;
};

}  // namespace tracefs
