// Reads who a task is from /proc, and only from those files of it that are
// safe while the task waits for our reply.
//
// Safe: /proc/TID/task/TID/stat and /proc/TID/status. They take no lock that
// the waiting task may hold. Never syscall, stack, auxv, mem, environ
// (exec_update_lock, held by a task that closes descriptors in execve), nor
// cmdline, maps (mmap_lock, held by one that unmaps a dirty file): reading
// those from a worker deadlocks the mount. Format: proc_pid_stat(5).
//
// Everything goes through a descriptor of /proc held from the start, so that a
// sandbox may take the path away later.
#ifndef TRACEFS_PROCESS_PROC_READER_H_
#define TRACEFS_PROCESS_PROC_READER_H_

#include <cstdint>
#include <optional>
#include <string_view>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/event/event.h"

namespace tracefs {

// Sets comm, ppid, pgid, sid and start_time from the text of a stat file. False
// if it is none. A command name may hold anything, ')' and newlines included.
bool ParseStat(std::string_view text, CallerInfo* info);

// The thread group id from the text of a status file.
std::optional<uint32_t> ParseTgid(std::string_view text);

// Threads: any, once open.
class ProcReader {
 public:
  // kSystem if `path` cannot be opened or does not show this process's pid
  // namespace, in which FUSE names callers.
  static Result<ProcReader> Open(const char* path = "/proc");

  // Sets everything but `serial`; start_time is the process's, not the
  // thread's. False if there is no such task or /proc hides it (hidepid). Costs
  // three to eight system calls; never waits for the task.
  bool Read(uint32_t tid, CallerInfo* info) const;

 private:
  explicit ProcReader(UniqueFd proc) : proc_(std::move(proc)) {}
  std::optional<uint32_t> ThreadGroupOf(uint32_t tid) const;
  bool ReadStat(uint32_t tid, CallerInfo* info) const;

  UniqueFd proc_;
};

}  // namespace tracefs

#endif  // TRACEFS_PROCESS_PROC_READER_H_
