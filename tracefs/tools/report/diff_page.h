// The page of diff: both runs side by side.
#pragma once

#include "tracefs/text/output_buffer.h"
#include "tracefs/tools/report/options.h"

namespace tracefs {

int RunDiffPage(const ReportOptions& options, OutputBuffer& out,
                OutputBuffer& err);

}  // namespace tracefs
