// Keeper: a process between a daemon and its helper that starts another helper
// when one has died. It reads no input: it forks, passes the daemon the other
// end of the new helper's socket, and waits.
#pragma once

#include <cstdint>
#include <functional>

#include "tracefs/base/unique_fd.h"

namespace tracefs {

enum class KeeperEnd : uint8_t {
  kWithDaemon,   // no other helper once the daemon is gone
  kWithoutHelp,  // the daemon needs the helper to end itself
};

// In a separate process, which already has only the rights the helper needs:
// runs `helper` in a child, with one end of a SOCK_SEQPACKET pair, and sends
// the other over `daemon`; at most one a second. Ends when a helper has ended
// by itself (exit status 0).
[[noreturn]] void KeepHelper(UniqueFd daemon, KeeperEnd end,
                             const std::function<void(UniqueFd)>& helper);

}  // namespace tracefs
