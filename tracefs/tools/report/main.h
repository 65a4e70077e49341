// The command tracefs-report, as its program calls it.
#pragma once

#include "tracefs/base/status.h"
#include "tracefs/text/output_buffer.h"

namespace tracefs {

// What its messages begin with.
inline constexpr char kReportSays[] = "tracefs-report: ";

// Says on `err` why something failed; what the exit status is then.
inline int Complain(const Status& status, OutputBuffer& err) {
  err.Append(kReportSays + status.message() + "\n");
  return ExitStatus(status);
}

// Returns the exit status.
int ReportMain(int argc, char** argv);

}  // namespace tracefs
