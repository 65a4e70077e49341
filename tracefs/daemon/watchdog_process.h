// The watchdog's own side: what runs in the child (watchdog.h).
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "tracefs/base/unique_fd.h"
#include "tracefs/daemon/watch_notes.h"
#include "tracefs/daemon/watchdog.h"

namespace tracefs {

// All that a daemon can ask for: the first byte of a datagram. kGuard has a
// path after it, and comes before the sandbox; kTracepoints has a TracepointUse
// and the number of one of this machine's processors; kEcho a short text; the
// others are that byte and nothing more. Anything else is answered with EINVAL,
// and descriptors that come with it are never taken.
enum class WatchdogRequest : char {
  kGuard = 'g',        // mount point; once
  kUnmount = 'u',      // what is guarded
  kUnmountLazy = 'l',  // likewise
  kStayShut = 's',     // what is guarded stays; at any time, and for good
  kConnectLog = 'c',   // the answer carries a connected socket
  kTracepoints = 't',  // the answer carries what OpenTracepointsOn opened
  kLook = 'k',         // the answer carries a socket to a Looker
  kReload = 'r',       // runs the command of WatchdogOptions
  kGoodbye = 'b',      // the daemon ends in order from here on
  kEcho = 'e',         // a text after it is the answer's text
};

// Lookers at a time; asked for more, it answers EAGAIN.
inline constexpr size_t kMostLookers = 4;

// Bytes of the text of an answer, at most.
inline constexpr size_t kMaxWatchdogText = 4096;

struct WatchedDaemon {
  pid_t pid = -1;
  int pidfd = -1;
  WatchNotes* notes = nullptr;  // may be null
  // Hangs up when nobody has any end of the daemon's any more; -1: there is
  // none.
  int all = -1;
};

// Keeps a watchdog going: makes its notes, gives up what it does not need and
// is its keeper (KeepHelper), with `keeper` for the daemon's other end.
[[noreturn]] void KeepWatchdog(UniqueFd keeper, UniqueFd daemon, pid_t pid,
                               const WatchdogOptions& options);

// Answers requests on `socket` until the daemon is gone or the socket is
// closed; then takes the guarded mount away, unless it is to stay shut, says so
// in the log if there was no goodbye, and ends this process. Goes on from what
// is noted. Every answer is an errno value in an int, and a text: of an error
// what failed, if there is more to say than its number.
[[noreturn]] void RunWatchdog(UniqueFd socket, const WatchedDaemon& daemon,
                              const WatchdogOptions& options);

}  // namespace tracefs
