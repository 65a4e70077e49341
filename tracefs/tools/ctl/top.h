// The loop of `tracefs-ctl top`: on a terminal a full-screen picture that obeys
// keys, elsewhere one picture after the other.
#pragma once

#include <atomic>
#include <string>

#include "tracefs/export/output_buffer.h"
#include "tracefs/tools/ctl/live_trace.h"
#include "tracefs/tools/ctl/options.h"

namespace tracefs {

// Shows what comes from `live` until the mount ends, `q` is pressed, all rounds
// are done, or `stop` is set. `mount` is for the title. A terminal is put back
// as it was.
Status Top(const CtlOptions& options, const std::string& mount, LiveTrace& live,
           OutputBuffer& out, const std::atomic<bool>& stop);

}  // namespace tracefs
