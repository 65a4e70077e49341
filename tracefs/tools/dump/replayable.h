// --check-replayable: what traces lack to be replayed; the same text as that of
// tracefs-replay --check.
#pragma once

#include "tracefs/text/output_buffer.h"
#include "tracefs/tools/dump/options.h"

namespace tracefs {

// The exit status: 1 if the traces cannot be replayed as they were.
int CheckReplayable(const DumpOptions& options, OutputBuffer& out,
                    OutputBuffer& err);

}  // namespace tracefs
