// The command tracefs-report, as its program calls it.
#pragma once

namespace tracefs {

// What its messages begin with.
inline constexpr char kReportSays[] = "tracefs-report: ";

// Returns the exit status.
int ReportMain(int argc, char** argv);

}  // namespace tracefs
