// Compares traces: what is slower, new or gone.
#pragma once

#include "tracefs/text/output_buffer.h"
#include "tracefs/tools/report/options.h"

namespace tracefs {

int RunDiff(const ReportOptions& options, OutputBuffer& out, OutputBuffer& err);

}  // namespace tracefs
