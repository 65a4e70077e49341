// The command line of tracefs-report.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/command/help_page.h"
#include "tracefs/command/paged_output.h"
#include "tracefs/headline/headline.h"
#include "tracefs/query/table_text.h"
#include "tracefs/reader/trace_input.h"

namespace tracefs {

struct ReportRow;

struct ReportOptions {
  HelpWish help = {};
  bool version = false;
  PagerWish pager;
  const ReportRow* row = nullptr;  // what is asked for; never null else
  bool print = false;              // the query of a question, unanswered
  bool sql = false;                // the question as SQL, unanswered
  std::string query;               // a file with one that was edited
  std::vector<std::string> words;  // what the question is about: PATH
  reader::InputOptions input;
  bool wait = false;   // until the traces are no longer being written
  std::string format;  // "": that of the row
  std::string output;  // "" = standard output
  std::string by;      // of diff; "": as its query has it
  std::string sort;    // "": as the question has it
  std::optional<size_t> top;
  std::vector<std::string> columns;
  std::string panel;  // svg and png: of which one
  std::string title;  // of documents; "": the names of the traces
  std::string from;   // as they were given
  std::string to;
  query::TableStyle table_style;
};

// What was asked with, as the commands of a headline are to ask again.
HeadlineFacts AskedWith(const ReportOptions& options);

// kInvalid, with the next step, for what does not make sense.
Result<ReportOptions> ParseReportOptions(int argc, const char* const* argv);

HelpPage ReportHelp();

}  // namespace tracefs
