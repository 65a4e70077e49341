// `tracefs-dump --browse`: a screen over traces.
#pragma once

#include <atomic>

#include "tracefs/text/output_buffer.h"
#include "tracefs/tools/dump/options.h"

namespace tracefs {

// Shows what is in the traces until it is ended; where there is no terminal,
// one report. Returns the exit status.
int Browse(const DumpOptions& options, OutputBuffer& out, OutputBuffer& err,
           const std::atomic<bool>& stop);

}  // namespace tracefs
