// Tables that tracefs-dump makes instead of a listing.
#pragma once

#include <atomic>

#include "tracefs/export/output_buffer.h"
#include "tracefs/tools/dump/options.h"

namespace tracefs {

// Writes the table that options.query asks for. Returns the exit status.
int PrintQuery(const DumpOptions& options, OutputBuffer& out, OutputBuffer& err,
               const std::atomic<bool>& stop);

}  // namespace tracefs
