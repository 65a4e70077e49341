// tracefs-ctl: asks and steers a running mount. See ctl.h; docs/man/
// tracefs-ctl.1.
#include "tracefs/tools/ctl/main.h"

#include <unistd.h>

#include "tracefs/command/front.h"
#include "tracefs/text/output_buffer.h"
#include "tracefs/tools/ctl/ctl.h"
#include "tracefs/tools/ctl/options.h"

namespace tracefs {
namespace {

int Run(const CtlOptions& options) {
  static const std::atomic<bool> never = false;
  // These end, and say how far they came.
  const bool endless = options.command == CtlCommand::kTail ||
                       options.command == CtlCommand::kTop ||
                       options.command == CtlCommand::kUnmount ||
                       options.follow;
  FdOutput out(STDOUT_FILENO);
  FdOutput err(STDERR_FILENO);
  return Ctl(options, out, err, endless ? StopAtSignals() : never);
}

}  // namespace
int CtlMain(int argc, char** argv) {
  return RunCommand({"tracefs-ctl", &CtlHelp}, ParseCtlOptions(argc, argv),
                    &Run);
}

}  // namespace tracefs
