// The row of `page`: a report of a whole workload as one HTML file, and what is
// in it in other forms.
#pragma once

#include <array>
#include <string_view>

#include "tracefs/report/document.h"
#include "tracefs/text/output_buffer.h"
#include "tracefs/tools/report/options.h"

namespace tracefs {

inline constexpr std::array<std::string_view, 5> kPageFormats = {
    "html", "json", "md", "svg", "png"};

// What the traces of `options` have. `status` is the exit status: above 1 there
// is nothing, and what is wrong is said.
report::Json ReadDocument(const ReportOptions& options, OutputBuffer& err,
                          int* status);

int RunPage(const ReportOptions& options, OutputBuffer& out, OutputBuffer& err);

// The panels of which there are pictures: "timeline, latency, …".
std::string PanelNames();

}  // namespace tracefs
