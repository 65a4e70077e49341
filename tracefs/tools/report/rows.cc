#include "tracefs/tools/report/rows.h"

#include <array>
#include <iterator>
#include <utility>

#include "tracefs/tools/report/page_row.h"
#include "tracefs/tools/report/questions.h"
#include "tracefs/tools/report/run_diff.h"
#include "tracefs/tools/report/run_question.h"

namespace tracefs {
namespace {

constexpr ReportRow RowOf(const ReadyQuestion& question) {
  return {.name = question.name,
          .help = question.help,
          .words = question.words,
          .formats = kQuestionFormats,
          .run = &RunQuestion,
          .query = question.query};
}

template <size_t... question>
constexpr auto AllRows(std::index_sequence<question...>) {
  return std::to_array<ReportRow>({
      {.name = "page",
       .help = "all panels in one HTML file, or in other forms",
       .formats = kPageFormats,
       .run = &RunPage},
      RowOf(kQuestions[question])...,
      {.name = "diff",
       .help = "what is slower, new or gone in B; each may be several traces "
               "with commas between",
       .words = "A B",
       .formats = kDiffFormats,
       .run = &RunDiff,
       .query = kDiffQuery,
       .compares = true},
  });
}
constexpr auto kRows =
    AllRows(std::make_index_sequence<std::size(kQuestions)>());

constexpr ReportRow kQueryFile = RowOf({"--query", "", ""});

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
