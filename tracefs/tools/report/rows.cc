#include "tracefs/tools/report/rows.h"

#include "tracefs/tools/report/page_row.h"
#include "tracefs/tools/report/run_question.h"

namespace tracefs {
namespace {

constexpr ReportRow kRows[] = {
    {.name = "page",
     .help = "all panels in one HTML file, or in other forms",
     .formats = kPageFormats,
     .run = &RunPage},
    {.name = "slowest",
     .help = "the operations that took longest",
     .formats = kQuestionFormats,
     .run = &RunQuestion,
     .query = R"(# What took longest?
[slowest]
analysis = slowest
sort = latency
top = 20
)"},
};

constexpr ReportRow kQueryFile = {.name = "--query",
                                  .help = "",
                                  .formats = kQuestionFormats,
                                  .run = &RunQuestion};

}  // namespace

const ReportRow* QueryFileRow() { return &kQueryFile; }

std::span<const ReportRow> ReportRows() { return kRows; }

const ReportRow* FindReportRow(std::string_view name) {
  for (const ReportRow& row : kRows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

const ReportRow* DefaultReportRow() { return FindReportRow("page"); }

}  // namespace tracefs
