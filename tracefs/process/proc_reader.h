// Reads who a task is from /proc, without ever waiting for the task, which
// itself waits for our reply.
//
// What is safe is decided by the locks the task may hold meanwhile. In execve
// it holds exec_update_lock while its close-on-exec descriptors are closed,
// which sends FLUSH requests. Files of /proc that take this lock must not be
// read before the reply to a FLUSH, or worker and caller wait for each other
// for good: always syscall, stack, auxv, mem, environ, io, the links exe, cwd
// and root; and in newer kernels (6.18.44) stat too, with no word of it in
// proc_pid_stat(5). A task that unmaps a dirty file holds mmap_lock: never
// cmdline, maps and their like. `status` and `comm` take neither,
// nor do getpgid(2), getsid(2) and pidfd_open(2).
//
// So everything comes from these, but for the time the process started, which
// never changes: that is read from stat once, while the request cannot be one
// of execve, and then kept with the number that the kernel gives each process
// for good (pidfs, Linux 6.9).
//
// Everything goes through a descriptor of /proc held from the start, so that a
// sandbox may take the path away later.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/event/event.h"

namespace tracefs {

// Sets comm, pid and ppid from the text of a status file. False if it is not
// one. A command name may hold anything; here its newlines and backslashes are
// escaped.
bool ParseStatus(std::string_view text, CallerInfo* info);

// The start time from the text of a stat file, where the name is not escaped
// and may hold anything, ')' included.
std::optional<uint64_t> ParseStartTime(std::string_view text);

// Who a task is, and which of all processes ever that is: `process_number` is
// distinct for each in the life of the system; 0 where the kernel has none.
struct ProcessReading {
  CallerInfo caller;  // all but `serial`
  uint64_t process_number = 0;
};

// Threads: any, once open.
class ProcReader {
 public:
  // kSystem if `path` cannot be opened or does not show this process's pid
  // namespace, in which FUSE names callers.
  static Result<ProcReader> Open(const char* path = "/proc");

  // Brings `reading` up to date; what it holds is used if it is of the same
  // process, as process_number tells. False if there is no such task or /proc
  // hides it (hidepid). With `may_be_in_exec`, stat is not read: start_time may
  // then be 0, unknown. Three to nine system calls; never waits for the task.
  bool Read(uint32_t tid, bool may_be_in_exec, ProcessReading* reading) const;

  // /proc itself, for what else is safe to read there.
  int fd() const { return proc_.get(); }

 private:
  ProcReader(UniqueFd proc, bool has_process_numbers)
      : proc_(std::move(proc)), has_process_numbers_(has_process_numbers) {}
  uint64_t ProcessNumber(uint32_t pid) const;

  UniqueFd proc_;
  bool has_process_numbers_;
};

}  // namespace tracefs
