// tracefs-report: answers questions about traces. See rows.h;
// docs/man/tracefs-report.1.
#include "tracefs/tools/report/main.h"

#include <unistd.h>

#include "tracefs/command/front.h"
#include "tracefs/command/paged_output.h"
#include "tracefs/tools/report/report.h"

namespace tracefs {

int ReportMain(int argc, char** argv) {
  return RunCommand({"tracefs-report", &ReportHelp},
                    ParseReportOptions(argc, argv),
                    [](const ReportOptions& options) {
                      PagedOutput out(options.pager);
                      FdOutput err(STDERR_FILENO);
                      return Report(options, out, err);
                    });
}

}  // namespace tracefs
