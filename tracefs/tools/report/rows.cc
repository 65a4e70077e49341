#include "tracefs/tools/report/rows.h"

#include "tracefs/tools/report/page_row.h"
#include "tracefs/tools/report/questions.h"
#include "tracefs/tools/report/run_diff.h"
#include "tracefs/tools/report/run_question.h"

namespace tracefs {
namespace {

constexpr ReportRow Question(std::string_view name, std::string_view help,
                             std::string_view query,
                             std::string_view words = {}) {
  return {.name = name,
          .help = help,
          .words = words,
          .formats = kQuestionFormats,
          .run = &RunQuestion,
          .query = query};
}

constexpr ReportRow kRows[] = {
    {.name = "page",
     .help = "all panels in one HTML file, or in other forms",
     .formats = kPageFormats,
     .run = &RunPage},
    Question("summary", "what happened, in a few tables", kSummaryQuery),
    Question("tree", "processes, what each did and how it ended", kTreeQuery),
    Question("files", "files by what was read and written", kFilesQuery),
    Question("access", "sequential, strided or random", kAccessQuery),
    Question("blocks", "re-reads, overwrites, lives of blocks, working set",
             kBlocksQuery),
    Question("lifetimes", "how long files live, and what is thrown away",
             kLifetimesQuery),
    Question("sharing", "files that several processes use", kSharingQuery),
    Question("double-writes", "rewritten, recreated, replaced by rename",
             kDoubleWritesQuery),
    Question("races", "reads that race with a writer", kRacesQuery),
    Question("churn", "where files are made and removed again", kChurnQuery),
    Question("errors", "what fails, whose and where", kErrorsQuery),
    Question("small-io", "who reads and writes in small pieces", kSmallIoQuery),
    Question("fsync", "who waits for disks", kFsyncQuery),
    Question("probes", "names that are looked for in vain", kProbesQuery),
    Question("slowest", "the operations that took longest", kSlowestQuery),
    Question("queueing", "operations under way at the same time",
             kQueueingQuery),
    Question("critical-path", "processes that the whole waited for",
             kCriticalPathQuery),
    Question("uses", "files that are read most, or written for nobody",
             kUsesQuery),
    Question("rates", "the busiest tenth, second, ten seconds and minute",
             kRatesQuery),
    Question("pauses", "how long it is quiet, and how long processes think",
             kPausesQuery),
    Question("permissions", "changes of modes and owners", kPermissionsQuery),
    Question("who", "who did what to the file PATH", kWhoQuery, "PATH"),
    {.name = "diff",
     .help = "what is slower, new or gone in B; each may be several traces "
             "with commas between",
     .words = "A B",
     .formats = kQuestionFormats,
     .run = &RunDiff,
     .query = kDiffQuery,
     .compares = true},
};

constexpr ReportRow kQueryFile = Question("--query", "", std::string_view());

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
