// The command tracefs-report, as its program calls it.
#pragma once

namespace tracefs {

// Returns the exit status.
int ReportMain(int argc, char** argv);

}  // namespace tracefs
