// What a child process does that goes on beside its parent, as the watchdog
// does: nothing of the parent's is left to it but what it is given.
#pragma once

#include <initializer_list>
#include <span>

namespace tracefs {

// Closes all descriptors from `first` on but `kept`, which is put in order. For
// a child after fork(): allocates nothing.
void CloseFilesFrom(unsigned first, std::span<int> kept);

// Closes what whoever started this program left open for it, but the standard
// files: all from 3 on that a program it runs would have, too (without
// FD_CLOEXEC; what is opened here has it). For a process that goes on after its
// caller, before it serves anybody.
void CloseInheritedFiles();

// In the child: no signal comes, the session is its own, so that it ends with
// its parent and not by what is sent to a group; standard files lead nowhere;
// of the others only `kept` stay; it leaves no core. `name`: 15 bytes are all
// that the kernel keeps.
void DetachChild(const char* name, std::initializer_list<int> kept);

}  // namespace tracefs
