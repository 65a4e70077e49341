// Whether numbers of processes are those that the kernel itself uses.
#pragma once

namespace tracefs {

// Whether this process is in the initial pid namespace, or the kernel knows no
// others; no, where that cannot be found out. `path`: /proc/self/ns/pid.
bool InInitialPidNamespace(const char* path = "/proc/self/ns/pid");

}  // namespace tracefs
