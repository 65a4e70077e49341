// Comma-separated values, RFC 4180 with "\n": a head line with the names of the
// columns, then a line an operation; empty where the trace has no value. Text
// is escaped as in the listing for people, so that a line is an operation, the
// file is UTF-8, and every name can be had back; data are in base 64.
//
// No cell is a formula to a spreadsheet (csv_text.h), unless safe=no.
#pragma once

#include <memory>

#include "tracefs/export/exporter.h"
#include "tracefs/export/table.h"

namespace tracefs {

inline constexpr ExportChoice kCsvChoices[] = {
    {"safe", "yes no",
     "escape the character that makes text a formula to a spreadsheet; default "
     "yes"},
};

std::unique_ptr<Exporter> MakeCsvExporter(OutputBuffer& out,
                                          const ExportOptions& options);

}  // namespace tracefs
