// Landlock(7): a domain from which other processes are out of reach.
//
// A process in a domain may look into none that is outside of it, whatever its
// user id and capabilities: the kernel refuses it everything that ptrace(2)
// would be refused for, and so /proc/PID/root, cwd, exe, fd, mem, environ, maps
// and the like. What /proc says to everybody (status, stat) stays. That is what
// looking up callers needs, and all it needs.
//
// Rules for files would do more, but not here: with any of them the kernel
// refuses to open a file that it knows by its handle and by no name, which
// happens whenever memory is short.
#pragma once

#include <string>

namespace tracefs {

// Puts this thread, and those it makes, into a domain, for good. Needs
// no_new_privs or CAP_SYS_ADMIN. Besides, where the kernel can: no TCP (6.7),
// no signals and no abstract Unix sockets to the outside (6.12). Returns what
// was had, "landlock 7", or why nothing: "no landlock: …".
std::string EnterLandlockDomain();

}  // namespace tracefs
