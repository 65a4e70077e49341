// tracefs-verify without its main: reads traces, undoes their chains as far as
// the keys reach, and prints what TraceJudge says.
#pragma once

#include "tracefs/text/output_buffer.h"
#include "tracefs/tools/verify/options.h"

namespace tracefs {

// Prints verdicts to `out` and what prevents them to `err`; returns the exit
// status.
int Verify(const VerifyOptions& options, OutputBuffer& out, OutputBuffer& err);

}  // namespace tracefs
