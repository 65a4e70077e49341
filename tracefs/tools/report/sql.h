// --sql: a question as SQL over Parquet files by host and day, unanswered.
// docs/fleet.md.
#pragma once

#include "tracefs/text/output_buffer.h"
#include "tracefs/tools/report/options.h"

namespace tracefs {

// Returns the exit status.
int PrintSql(const ReportOptions& options, OutputBuffer& out,
             OutputBuffer& err);

}  // namespace tracefs
