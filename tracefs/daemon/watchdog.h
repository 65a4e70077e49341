// Watchdog: a small process beside the daemon that takes the mount away when
// the daemon is gone, so that users get an error and not a dead directory;
// or, after StayShut, leaves the dead mount where it is.
//
// It is also the daemon's hand in the namespaces it was started in: once the
// daemon has shut itself into its sandbox, only this process can unmount,
// connect to the log, open tracepoints, start a looker and reload the config.
// It treats the daemon as hostile: what it does is a fixed list
// (watchdog_process.h), and the log, the command that reloads and the mount
// were given before the sandbox was entered. It looks at the mount itself,
// once, and touches no other.
//
// The child holds no descriptor but a socket to the daemon, a pidfd of the
// daemon, its notes and O_PATH descriptors of directories: never /dev/fuse, a
// trace, or anybody's terminal. If it dies, its keeper (helper_keeper.h) starts
// another, which goes on from what this one has noted (watch_notes.h). It has a
// session of its own and ignores the signals that end a daemon: a signal for
// the whole process group ends the daemon, and the end of the daemon ends the
// child.
//
// Where mount(2) is not allowed it works through fusermount3, as the mount did.
#pragma once

#include <sys/types.h>

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tracefs/base/helper_link.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/daemon/log.h"
#include "tracefs/daemon/tracepoints.h"

namespace tracefs {

// What the process is given when it is made, and is never told again.
struct WatchdogOptions {
  // Where the end of the daemon is told, if it dies. No path: nowhere.
  LogPlace log = {.kind = LogPlace::Kind::kNone, .path = ""};
  // What Reload runs, absolute: `program MOUNT_POINT reload [config]`. No
  // program: there is nothing to reload; no config: the program finds it.
  std::string reload_program = "";
  std::string reload_config = "";
  // There is one daemon after the other: the last has ended when nobody has the
  // other end of the socket any more (tracefs/survive).
  bool survives = false;
};

class Watchdog {
 public:
  // Makes the process. To be called while there is one thread, before anything
  // is opened that must not outlive the daemon. kSystem if there is no room
  // for another process.
  static Result<std::unique_ptr<Watchdog>> Start(
      const WatchdogOptions& options = {});
  // One that another program has started: the process, where its helpers come
  // from, and the one there is (or none).
  static std::unique_ptr<Watchdog> Adopt(pid_t keeper, UniqueFd socket,
                                         UniqueFd helper);
  // Ends the process, which first takes away what is left of the mount.
  ~Watchdog();
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // A socket of the log, connected again. Threads: any.
  Result<UniqueFd> ConnectLog();

  // Tracepoints of the kernel, which a sandboxed daemon may not open:
  // OpenTracepointsOn, without this process. Threads: any.
  Result<tracefs::OpenTracepoints> OpenTracepoints(TracepointUse use,
                                                   int processor);

  // A process that may see what others run (looker.h): a socket to it.
  Result<UniqueFd> StartLooker();

  // A daemon takes the place of one that may have been asking: answers to that
  // one are thrown away.
  Status TakeOver();

  // Runs the command of the options in a process of its own, without waiting
  // for it; its failure is told in the log. One at a time: while it runs, the
  // request is remembered, and it runs once more.
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

  // Of its keeper.
  pid_t pid() const { return keeper_; }
  const HelperLink& link() const { return *link_; }

 private:
  Watchdog(pid_t keeper, UniqueFd socket)
      : keeper_(keeper),
        link_(std::make_unique<HelperLink>(
            HelperKind::kWatch, "unmounts and reloads", std::move(socket))) {}
  // Asks and waits for the answer: an errno value, and a descriptor if `fd` is
  // not null and there is one.
  Status Ask(char request, const std::string& text, UniqueFd* fd);
  // The same with all descriptors, and the text of the answer.
  Status Ask(char request, const std::string& text,
             std::vector<UniqueFd>* files, std::string* said);
  Status AskOnce(const std::string& question, std::vector<UniqueFd>* files,
                 std::string* said);

  const pid_t keeper_;
  std::mutex mu_;  // one question at a time
  std::unique_ptr<HelperLink> link_;
};

}  // namespace tracefs
