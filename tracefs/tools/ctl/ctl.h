// tracefs-ctl without its main: asks and steers a running mount.
#pragma once

#include <atomic>

#include "tracefs/text/output_buffer.h"
#include "tracefs/tools/ctl/options.h"

namespace tracefs {

// Does what `options` ask for. Returns the exit status. `tail` and `top` go on
// until the mount ends, the reader of `out` goes away, or `stop` is set (by a
// signal handler).
int Ctl(const CtlOptions& options, OutputBuffer& out, OutputBuffer& err,
        const std::atomic<bool>& stop);

}  // namespace tracefs
