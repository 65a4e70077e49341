// Runs tracefs-report.
#pragma once

#include "tracefs/text/output_buffer.h"
#include "tracefs/tools/report/options.h"

namespace tracefs {

// Returns the exit status.
int Report(const ReportOptions& options, OutputBuffer& out, OutputBuffer& err);

}  // namespace tracefs
