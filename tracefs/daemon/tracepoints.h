// The kernel's tracepoints by perf_event_open(2), as `perf trace` opens them.
//
// Taken together, the tracepoints of a purpose tell in one ring for each
// processor what happened there. Opening them takes CAP_PERFMON (or
// CAP_SYS_ADMIN) and the kernel's own tracefs, which is mounted for a moment
// where nobody else sees it. A daemon in its sandbox has neither: its watchdog
// opens them for it (watchdog.h).
//
// They cost every process of the machine a little while they are open, so
// nobody opens them who does not ask for what they say.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"

namespace tracefs {

enum class TracepointUse : char {
  // Who entered which system call: raw_syscalls:sys_enter, filtered in the
  // kernel to calls that can reach a file system and to other processes than
  // `daemon`; and signal:signal_deliver, which ends one. The ring keeps the
  // newest and is read from there backwards.
  kCalls = 'c',
  // Who began, became and ended: sched:sched_process_{fork,exec,exit},
  // task:task_newtask, task:task_rename; of programs that are run the stack
  // pointer and the stack, where the arguments are. The ring is read in order;
  // what does not fit is counted.
  kProcesses = 'p',
};

struct OpenTracepoints {
  // The first has the ring; the others write to it and must stay open, too.
  std::vector<UniqueFd> files;
  // What their records look like, a line each: "sched/sched_process_exec 365
  // filename:8:4 pid:12:4": event, number, and of each field name, offset and
  // size.
  std::string layout;
};

// Those of one processor. They tell at once. kSystem says what is missing and
// what to do; ENODEV where there is no such processor, or it sleeps.
Result<OpenTracepoints> OpenTracepointsOn(TracepointUse use, int processor,
                                          pid_t daemon);

// A format file of the kernel's tracefs as a line of OpenTracepoints::layout;
// empty if it is none.
std::string LayoutLine(const std::string& event, const std::string& format);

// The filter of kCalls: what is no call that can reach a file system by its
// arguments, in words of the kernel, and none of these threads (64 at most).
std::string CallFilter(const std::vector<pid_t>& without_threads);

}  // namespace tracefs
