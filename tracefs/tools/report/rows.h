// The table of what tracefs-report can make of traces: a row for each question,
// and for each kind of document.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tracefs/text/output_buffer.h"
#include "tracefs/tools/report/options.h"

namespace tracefs {

struct ReportRow {
  std::string_view name;
  std::string_view help = {};
  // What stands between its name and the traces: "PATH".
  std::string_view words = {};
  // The first one is the default.
  std::span<const std::string_view> formats;
  // Does it and returns the exit status. `out` is standard output, or the file
  // that takes the place of --output when the status is 0 or 1.
  int (*run)(const ReportOptions& options, OutputBuffer& out,
             OutputBuffer& err);
  // The query that --print shows; "" of documents.
  std::string_view query = {};
  bool compares = false;  // the words are traces, too: A B
};

std::span<const ReportRow> ReportRows();
const ReportRow* FindReportRow(std::string_view name);
// Of --query FILE.
const ReportRow* QueryFileRow();
// What `tracefs-report TRACE -o FILE` makes, if there is such a row.
const ReportRow* DefaultReportRow();

}  // namespace tracefs
