// The daemon's standing beside the processes whose calls it answers, where the
// kernel shares processors out among sessions: autogroups, sched(7).
#pragma once

namespace tracefs {

// Over io_uring a queue thread and the caller it answers take turns on one
// processor. When the reply wakes the caller, the scheduler looks for an idle
// processor; on one where it finds it the caller has to start anew, and its
// next request is another queue's: twice the time. A queue thread that is
// SCHED_IDLE counts as idle, and its caller stays.
//
// Such a thread would starve beside busy ones of its own group. But where the
// daemon's session is a group by itself, groups compete and not their threads,
// and this makes that group the most urgent. So, if the daemon leads its
// session and sessions are what counts (no cgroup has a say), all threads of
// the process, and those they will start, become SCHED_IDLE, and true is
// returned. Else, or without CAP_SYS_NICE, nothing changes.
//
// Should autogroups be switched off later (kernel.sched_autogroup_enabled), the
// mount must be made anew.
bool PreferOwnSession();

}  // namespace tracefs
