// A mount of tracefs for one test: started by the real command, recording to a
// temporary trace, ended by umount, and nothing may be left of it.
//
//   TracefsMount mount;
//   const Status status = mount.Start({.visibility = "exact"});
//   if (mount.skip_reason()) GTEST_SKIP() << *mount.skip_reason();
//   … work in mount.mount_dir(), look at mount.backing_dir() …
//   EXPECT_EQ(mount.Stop(), "");   // unmounted, process gone, trace closed
//   … read mount.trace_path() …
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "tracefs/base/status.h"

namespace tracefs {

// A directory of its own below $TMPDIR (or /tmp), removed with all that is in
// it by the destructor. With kTmpfs a tmpfs is mounted on it, with kOverlay it
// is an overlay over one: no file handles, no passthrough; with kExt4, kXfs and
// kBtrfs it is a new file system in a loop device (all need root).
class ScratchDir {
 public:
  enum Kind { kDisk, kTmpfs, kOverlay, kExt4, kXfs, kBtrfs };
  explicit ScratchDir(Kind kind = kDisk);
  ~ScratchDir();
  ScratchDir(const ScratchDir&) = delete;
  ScratchDir& operator=(const ScratchDir&) = delete;

  // Empty if it could not be made; then error() says why.
  const std::string& path() const { return path_; }
  const std::string& error() const { return error_; }

  // What the kernel lacks for that kind, if anything.
  static std::optional<std::string> skip_reason(Kind kind);

 private:
  bool MountOver(const char* type, const std::string& where,
                 const std::string& options);
  void MakeInLoop(const std::string& type);

  std::string path_;
  std::string made_;  // path_ or above it
  std::string error_;
  std::vector<std::string> mounted_;
};

struct MountFixtureOptions {
  ScratchDir::Kind backing = ScratchDir::kDisk;
  std::string visibility = "auto";  // exact, auto, fast
  std::string transport = "auto";   // auto, uring, dev
  // The config; "%TRACE%" in it becomes trace_path(). Default: everything of
  // every operation (STR_ALL) to a trace file.
  std::string config = "";
  bool over_itself = false;  // mount over the backing directory itself
  int max_descriptors = 0;   // RLIMIT_NOFILE, hard and soft; 0: ours
  std::vector<std::string> arguments = {};  // more of tracefs-mount's
};

class TracefsMount {
 public:
  TracefsMount() = default;
  // Unmounts by force and kills the daemon if Stop() was not called or failed.
  ~TracefsMount();
  TracefsMount(const TracefsMount&) = delete;
  TracefsMount& operator=(const TracefsMount&) = delete;

  // Runs tracefs-mount and waits until the mount is there. The status carries
  // what the command said.
  Status Start(const MountFixtureOptions& options);

  // Why no mount can be had here (no /dev/fuse, not root), if so.
  static std::optional<std::string> skip_reason();

  // Unmounts and waits until the daemon has ended. Empty, or what was wrong: a
  // mount or a process left over, a failing umount.
  std::string Stop();

  // SIGKILL to the daemon, then a lazy unmount of what it leaves.
  void KillDaemon();

  const std::string& backing_dir() const { return backing_; }
  const std::string& mount_dir() const { return mount_; }
  const std::string& trace_path() const { return trace_; }
  // The daemon's, 0 if there is none.
  pid_t daemon_pid() const { return daemon_; }

 private:
  void LazyUnmount();

  std::optional<ScratchDir> scratch_;  // config, trace, mount point
  std::optional<ScratchDir> backing_scratch_;
  std::string backing_;
  std::string mount_;
  std::string trace_;
  pid_t daemon_ = 0;
  bool mounted_ = false;
};

// What a finished command wrote and how it ended.
struct CommandResult {
  int status = -1;     // exit status; 128 + signal if killed
  std::string output;  // standard output and error together
};
// Runs a command (not through a shell) and waits for it, at most `timeout_s`
// seconds; then it is killed.
CommandResult RunCommand(const std::vector<std::string>& arguments,
                         int timeout_s = 300);

// The type of the topmost file system mounted exactly there ("fuse.tracefs"),
// by /proc/self/mountinfo; empty if there is none.
std::string MountType(const std::string& path);

}  // namespace tracefs
