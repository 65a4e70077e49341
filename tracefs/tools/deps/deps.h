// tracefs-deps without its main: answers questions about a build.
#pragma once

#include "tracefs/text/output_buffer.h"
#include "tracefs/tools/deps/options.h"

namespace tracefs {

// Answers to `out`, what is wrong or must be known besides to `err`. Returns
// the exit status.
int Deps(const DepsOptions& options, OutputBuffer& out, OutputBuffer& err);

}  // namespace tracefs
