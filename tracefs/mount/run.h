// One mount from beginning to end.
#pragma once

#include <functional>
#include <string>

#include "tracefs/base/status.h"
#include "tracefs/daemon/log.h"
#include "tracefs/mount/options.h"
#include "tracefs/survive/inheritance.h"

namespace tracefs {

class ProcessFeed;

// Reads the config, opens outputs, mounts, calls `ready`, serves until the end
// and closes the traces. The status is the first thing that went wrong.
// Later messages go to `log`. `feed`: process records for the traces, from
// tracefs-run, whose end ends the mount; null: there are none.
Status Run(const MountOptions& options, Log& log,
           const std::function<Status()>& ready, ProcessFeed* feed = nullptr);

// The same from where another program has left it: one mount that goes on. Does
// not return where this program cannot, or is only asked whether it could.
Status GoOn(const MountOptions& options, Log& log,
            const survive::Inheritance& inheritance);

// tracefs-ctl, in the directory of this program.
std::string ControlProgram();

}  // namespace tracefs
