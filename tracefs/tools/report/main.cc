// tracefs-report: answers questions about traces. See rows.h;
// docs/man/tracefs-report.1.
#include <signal.h>
#include <unistd.h>

#include "tracefs/command/front.h"
#include "tracefs/tools/report/report.h"

int main(int argc, char** argv) {
  using namespace tracefs;  // NOLINT: a main
  return RunCommand({"tracefs-report", &ReportHelp},
                    ParseReportOptions(argc, argv),
                    [](const ReportOptions& options) {
                      ::signal(SIGPIPE, SIG_IGN);
                      FdOutput out(STDOUT_FILENO);
                      FdOutput err(STDERR_FILENO);
                      return Report(options, out, err);
                    });
}
