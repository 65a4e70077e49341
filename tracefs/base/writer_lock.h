// How readers know that a file is still being written: its writer holds a lock
// on it, which the kernel lets go when the writer ends, however it ends.
//
// The lock is advisory and of the open file description (fcntl_locking(2)): it
// is nobody's way, readers need no more than to read, and it is seen over NFS
// where locks are. Where it cannot be had (a file system without locks) or is
// not seen (through a FUSE mount that keeps its own), nothing is claimed.
#pragma once

namespace tracefs {

// Holds the lock until the last descriptor of this open file is closed. `fd`
// is open for writing. False if it cannot be had.
bool LockAsWriter(int fd);

// Whether somebody holds it now. `fd`: open for reading or writing. Changes
// nothing.
bool WriterLives(int fd);

}  // namespace tracefs
