// What tracefs-run does about signals that are sent to it: they are for its
// command for as long as that is there.
#pragma once

#include <sys/types.h>

namespace tracefs {

// All that somebody sends to have something done are passed on from here on,
// and end this process no more. After the command has started, which must have
// them unchanged.
void LeaveSignalsTo(pid_t command);

// Whether what has stopped the command is for both of them. Then stops this
// process, until somebody resumes it.
bool StopsBoth(int signal);
void StopAsTold();

// There is no command any more, but there may be others to wait for: TERM, INT,
// QUIT and HUP end a call that waits, and ToldToEnd is true from then on.
void CommandHasEnded();
bool ToldToEnd();

// Nobody is waited for any more: those four end this process, and the mount
// then ends in order by itself.
void LeaveSignalsToKernel();

}  // namespace tracefs
