// Keeper: the process that outlives a daemon and starts the next.
//
// It is the process that was started, stopped at the moment when everything was
// open and nothing had begun: one thread, outside the sandbox. The daemon is a
// copy of it that shares its table of descriptors (clone(CLONE_FILES)), and so
// is each later one: none runs a program, opens a path or reads a config to
// begin. When a daemon is killed, the connection to the kernel and all open
// files stay open in the keeper's table; what is needed beside them lies in the
// area.
//
// All that it does: waits; passes signals on; makes another copy of itself when
// the daemon was killed. It ends with a daemon that ends by itself, and with
// the same status, and also if daemons crash again and again: then the
// connection closes, and what happens is what happens to a mount without a
// keeper. The OOM killer does not take it.
//
// If the keeper itself dies, the daemon goes on, and says so: it has no keeper
// any more.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "tracefs/base/status.h"
#include "tracefs/survive/area.h"

namespace tracefs::survive {

// This process is about to become a keeper: the OOM killer shall not take it.
// While it has CAP_SYS_RESOURCE.
void ProtectFromOomKiller();

// Becomes a keeper, and returns in each daemon: how many there were before it.
// In a later one all descriptors are as they were when this was called, and
// those of the records in `area` besides. With one thread, and its signals
// blocked. `told`: called in the keeper for its log.
Result<uint32_t> BecomeKeeper(
    Area& area, const std::function<void(const std::string&)>& told);

// In a daemon: whether its keeper is still there.
bool KeeperLives();

// How many crashes in a minute are too many, and how many daemons in a row that
// did not come to serve. Those killed by SIGKILL do not count.
inline constexpr uint32_t kMostCrashesInMinute = 10;
inline constexpr uint32_t kMostInVain = 5;

}  // namespace tracefs::survive
