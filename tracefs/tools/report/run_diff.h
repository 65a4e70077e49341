// Compares traces: what is slower, new or gone.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/query/table.h"
#include "tracefs/text/output_buffer.h"
#include "tracefs/tools/report/options.h"

namespace tracefs {

// Of one side, as it was given: one whose own name may have commas, or several
// with commas between.
std::vector<std::string> TracesOf(const std::string& side);

int RunDiff(const ReportOptions& options, OutputBuffer& out, OutputBuffer& err);

// The table of it, by these keys ("": as its query has it). `top`: how many
// rows, where neither options nor, without it, the query say. `status` becomes
// 1 if something of a trace is damaged or lost.
Result<query::Table> DiffTable(const ReportOptions& options,
                               const std::string& by, std::optional<size_t> top,
                               OutputBuffer& err, int* status);

}  // namespace tracefs
