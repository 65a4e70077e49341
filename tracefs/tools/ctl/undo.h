// tracefs-ctl MNT undo: takes back on a mounted tree what operations did, by
// the trace that the mount is writing. The plan and its steps are those of
// tracefs-replay --undo (tracefs/replay/undo_run.h); they are done through the
// mount, by this process and with its rights.
//
// The daemon is asked for two things: to hand on what it still has in memory,
// and to hold no change that this process makes, which rules may take for what
// it takes back.
// Which mount, which trace and which folder of what was kept comes from the
// kernel, the caller's words and the note of the mount (mount_note.h).
#pragma once

#include <functional>
#include <string>

#include "tracefs/base/status.h"
#include "tracefs/control/client.h"
#include "tracefs/text/output_buffer.h"
#include "tracefs/tools/ctl/options.h"

namespace tracefs {

// How many steps were not, or cannot be, done. `tell` gets remarks, a line
// each.
Result<uint64_t> UndoOnMount(
    const CtlOptions& options, ControlClient& client, OutputBuffer& out,
    const std::function<void(const std::string&)>& tell);

}  // namespace tracefs
