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
// the same status. Where daemons crash again and again, it has the next one
// serve without traces, or ends where that must not be, or where that crashes
// again and again, too: then the connection closes, and what happens is what
// happens to a mount without a keeper. The OOM killer does not take it.
//
// One more copy of it, the spare, only waits for the keeper's end. It is then
// the keeper, and has a spare of its own. The daemon that is there is no child
// of that one, which knows only that it has ended; what of, the area says. If
// keeper and spare are killed at once, the daemon goes on without.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>

#include "tracefs/base/status.h"
#include "tracefs/survive/area.h"
#include "tracefs/survive/hand_over.h"

namespace tracefs::survive {

// This process is about to become a keeper: the OOM killer shall not take it.
// While it has CAP_SYS_RESOURCE.
void ProtectFromOomKiller();

// How daemons are to treat the OOM killer, in a keeper that takes the place of
// another program's; and what it is.
void RememberOomScore(const std::string& score);
std::string OomScore();

struct KeeperOptions {
  // A mount whose daemons crash again and again goes on without traces.
  bool goes_on_untraced = true;
  // For the log: why the mount ends. Called in the keeper.
  std::function<void(const std::string&)> told;
  // What would take this one's place (hand_over.h).
  ProgramToRun program = {};
  // This process has taken the place of another program, as far as that.
  const Inheritance* inheritance = nullptr;
};

// Becomes a keeper, and returns in each daemon: how many there were before it,
// those of other programs, too. Where another program is there still, that ends
// first; if it has gone on meanwhile, this does not return.
// In a later one all descriptors are as they were when this was called, and
// those of the records in `area` besides. With one thread, and its signals
// blocked.
Result<uint32_t> BecomeKeeper(Area& area, const KeeperOptions& options);

// In a daemon: whether it has a keeper.
bool KeeperLives(const Area& area);

// How many crashes in a minute are too many, and how many daemons in a row that
// did not come to serve. Those killed by SIGKILL do not count; nor do, after
// these were too many, those before.
inline constexpr uint32_t kMostCrashesInMinute = 10;
inline constexpr uint32_t kMostInVain = 5;

}  // namespace tracefs::survive
