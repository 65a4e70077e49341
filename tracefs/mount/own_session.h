// The daemon's standing beside the processes whose calls it answers, where the
// kernel shares processors out among sessions (autogroups, sched(7)).
#ifndef TRACEFS_MOUNT_OWN_SESSION_H_
#define TRACEFS_MOUNT_OWN_SESSION_H_

namespace tracefs {

// Between sessions it is not the nice value of a thread that counts but that of
// its session; a caller in another one would lose its queue thread to another
// processor with each reply, and twice the time. So the daemon's session
// becomes the most urgent. What shares a session with others keeps its
// standing: only a process that leads its session, or has no controlling
// terminal to share and may found a session of its own, does this. Where
// autogroups are off or the privilege (CAP_SYS_NICE) is missing all stays as it
// was.
//
// Before the sandbox is entered and other threads are started.
void PreferOwnSession();

}  // namespace tracefs

#endif  // TRACEFS_MOUNT_OWN_SESSION_H_
