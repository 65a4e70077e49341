// What the rings of FUSE over io_uring can still be used for in the sandbox.
//
// No filter of system calls sees what a ring is asked for: with one of his own
// an attacker makes sockets and all else that the filter refuses. So there are
// no other rings than those that serve, and these do nothing else.
#pragma once

namespace tracefs {

// Limits a ring that was made with IORING_SETUP_R_DISABLED for good to what
// FUSE takes, and enables it, for the calling thread. 0, or an errno.
int LimitRing(int ring);

// Refuses new rings, and changes of those that there are, to all threads of
// this process, which is in its sandbox. 0, or an errno.
int RefuseMoreRings();

}  // namespace tracefs
