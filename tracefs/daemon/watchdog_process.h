// The watchdog's own side: what runs in the child (watchdog.h).
#pragma once

#include "tracefs/base/unique_fd.h"

namespace tracefs {

// First byte of a datagram to the watchdog; the rest is a path.
enum class WatchdogRequest : char {
  kAllow = 'a',        // directory for kMakeFile
  kGuard = 'g',        // mount point
  kUnmount = 'u',      // no path
  kUnmountLazy = 'l',  // no path
  kMakeFile = 'f',     // new file; the answer carries its descriptor
  kLog = 'o',          // kind of log, and the path of its socket
  kConnectLog = 'c',   // no path; the answer carries a connected socket
  kGoodbye = 'b',      // no path: the daemon ends in order from here on
};

// Answers requests on `socket` until the process behind `daemon` (a pidfd) is
// gone or the socket is closed; then takes the guarded mount away, says in the
// log so if there was no goodbye, and ends this process. Every answer is an
// errno value in an int.
[[noreturn]] void RunWatchdog(UniqueFd socket, UniqueFd daemon);

}  // namespace tracefs
