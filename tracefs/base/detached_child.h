// Sets up a child process that goes on beside its parent, as the watchdog does:
// it keeps nothing of the parent's but what it is given.
#pragma once

#include <initializer_list>
#include <span>

namespace tracefs {

// Closes all descriptors from `first` on except `kept`, which it sorts. For a
// child after fork(): allocates nothing.
void CloseFilesFrom(unsigned first, std::span<int> kept);

// Closes what the caller of this program left open for it, except the standard
// files: all from 3 on that a program it runs would inherit, too (without
// FD_CLOEXEC; files opened here have it). For a process that outlives its
// caller, before it serves any request. `kept` stay.
void CloseInheritedFiles(std::span<const int> kept = {});

// In the parent, before there is a mount: its children need not look anything
// up then, which they might wait for. Threads: one.
void PrepareToDetach();

// In the child: signals are blocked; it has its own session, so that it ends
// with its parent and not by a signal to a group; standard files lead nowhere;
// of the others only `kept` stay; it leaves no core. `name`: the kernel keeps
// only 15 bytes.
void DetachChild(const char* name, std::initializer_list<int> kept);

}  // namespace tracefs
