// One mount from beginning to end.
#pragma once

#include <functional>

#include "tracefs/base/status.h"
#include "tracefs/daemon/log.h"
#include "tracefs/mount/options.h"

namespace tracefs {

// Reads the config, opens outputs, mounts, calls `ready`, serves until the end
// and closes the traces. The status is the first thing that went wrong.
// What is to be said later goes to `log`.
Status Run(const MountOptions& options, Log& log,
           const std::function<Status()>& ready);

}  // namespace tracefs
