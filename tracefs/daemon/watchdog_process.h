// The watchdog's own side: what runs in the child (watchdog.h).
#pragma once

#include <cstddef>

#include "tracefs/base/unique_fd.h"

namespace tracefs {

// First byte of a datagram to the watchdog; the rest is a path.
enum class WatchdogRequest : char {
  kAllow = 'a',        // directory for kMakeFile
  kGuard = 'g',        // mount point
  kUnmount = 'u',      // no path
  kUnmountLazy = 'l',  // no path
  kStayShut = 's',     // no path; at any time, and for good
  kMakeFile = 'f',     // new file; the answer carries its descriptor
  kLog = 'o',          // kind of log, and the path of its socket
  kConnectLog = 'c',   // no path; the answer carries a connected socket
  kTracepoints = 't',  // TracepointUse, and the number of a processor; the
                       // answer carries what OpenTracepointsOn opened
  kLook = 'k',         // no path: the answer carries a socket to a Looker
  kUseReload = 'p',    // program for kReload
  kReload = 'r',       // no path
  kGoodbye = 'b',      // no path: the daemon ends in order from here on
};

// Bytes of the text of an answer, at most.
inline constexpr size_t kMaxWatchdogText = 4096;

// Answers requests on `socket` until the process behind `daemon` (a pidfd) is
// gone or the socket is closed; then takes the guarded mount away, unless it is
// to stay shut, says in the log so if there was no goodbye, and ends this
// process. Every answer is an errno value in an int, and a text: of an error
// what failed, if there is more to say than its number.
[[noreturn]] void RunWatchdog(UniqueFd socket, UniqueFd daemon);

}  // namespace tracefs
