// tracefs-dump without its main: prints traces.
#pragma once

#include <atomic>

#include "tracefs/reader/trace_input.h"
#include "tracefs/text/output_buffer.h"
#include "tracefs/tools/dump/options.h"

namespace tracefs {

// What they say of traces: which, and what of them.
reader::InputOptions InputOf(const DumpOptions& options);

// Prints what `options` ask for to `out` and, when done, what is wrong to
// `err`. Returns the exit status. With --follow it goes on until all traces
// have ended or `stop` is set (by a signal handler).
int Dump(const DumpOptions& options, OutputBuffer& out, OutputBuffer& err,
         const std::atomic<bool>& stop);

}  // namespace tracefs
