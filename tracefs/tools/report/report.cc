#include "tracefs/tools/report/report.h"

#include <errno.h>

#include <algorithm>

#include "tracefs/base/replacement.h"
#include "tracefs/command/wait_for_writers.h"
#include "tracefs/text/escape.h"
#include "tracefs/tools/report/main.h"
#include "tracefs/tools/report/rows.h"
#include "tracefs/tools/report/sql.h"

namespace tracefs {
namespace {

int Run(const ReportOptions& options, OutputBuffer& out, OutputBuffer& err) {
  return options.sql ? PrintSql(options, out, err)
                     : options.row->run(options, out, err);
}

int ToFile(const ReportOptions& options, OutputBuffer& err) {
  auto place = Replacement::Begin(options.output, Replacement::Kind::kFile);
  if (!place.ok()) return Complain(place.status().Prefixed("--output"), err);
  FdOutput file(place->fd());
  const int status = Run(options, file, err);
  if (status > 1) {
    return std::max(status,
                    Complain(Status::Invalid(TerminalWord(options.output) +
                                             " is as it was"),
                             err));
  }
  if (Status s = file.Flush(); !s.ok()) return Complain(s, err);
  if (Status s = place->Commit(); !s.ok()) return Complain(s, err);
  return status;
}

}  // namespace

int Report(const ReportOptions& options, OutputBuffer& out, OutputBuffer& err) {
  if (options.wait) {
    const auto tell = [&err](const std::string& text) {
      err.Append(kReportSays + text + "\n");
      (void)err.Flush();
    };
    (void)WaitForWriters(options.input.traces, tell, nullptr);
  }
  int status = 0;
  if (!options.output.empty()) {
    status = ToFile(options, err);
  } else {
    status = Run(options, out, err);
    const Status written = out.Flush();
    // A reader that has seen enough (head, less) is not an error.
    if (!written.ok() && written.error() != EPIPE) {
      status = std::max(status, Complain(written, err));
    }
  }
  (void)err.Flush();
  return status;
}

}  // namespace tracefs
