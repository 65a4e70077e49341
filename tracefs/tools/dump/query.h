// Tables that tracefs-dump makes instead of a listing.
#pragma once

#include <atomic>

#include "tracefs/text/output_buffer.h"
#include "tracefs/tools/dump/options.h"

namespace tracefs {

struct QueryEnd {
  int status = 0;         // to exit with
  bool anything = false;  // whether any part of a trace was there to be read
};

// Writes the table that options.query asks for.
QueryEnd PrintQuery(const DumpOptions& options, OutputBuffer& out,
                    OutputBuffer& err, const std::atomic<bool>& stop);

}  // namespace tracefs
