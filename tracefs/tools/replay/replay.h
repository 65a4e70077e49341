// tracefs-replay without its main.
#pragma once

#include "tracefs/text/output_buffer.h"
#include "tracefs/tools/replay/options.h"

namespace tracefs {

// Reports to `out`, what is wrong or must be known besides to `err`. Returns
// the exit status.
int Replay(const ReplayOptions& options, OutputBuffer& out, OutputBuffer& err);

}  // namespace tracefs
