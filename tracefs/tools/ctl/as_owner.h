// Root, who acts on the mount of another user: as that user. What lies at the
// other end of such a mount is that user's program, and so may be the paths
// that lead to it.
#pragma once

#include <atomic>
#include <functional>

#include "tracefs/base/status.h"
#include "tracefs/control/place.h"

namespace tracefs {

// Whether `mount` is another user's and this process is root.
bool IsForeign(const MountIdentity& mount);

// Runs `act` in a child that has the user id of the mount's owner, that user's
// groups and no capability, and returns its exit status. A signal that sets
// `stop` is passed on to it. kSystem if there was none, or it was killed.
Result<int> AsOwner(const MountIdentity& mount, const std::function<int()>& act,
                    const std::atomic<bool>& stop);

}  // namespace tracefs
