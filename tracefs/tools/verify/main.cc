// tracefs-verify: says what traces are worth as evidence. See verify.h;
// docs/man/tracefs-verify.1.
#include "tracefs/tools/verify/main.h"

#include <unistd.h>

#include "tracefs/command/front.h"
#include "tracefs/tools/verify/verify.h"

namespace tracefs {

int VerifyMain(int argc, char** argv) {
  return RunCommand({"tracefs-verify", &VerifyHelp},
                    ParseVerifyOptions(argc, argv),
                    [](const VerifyOptions& options) {
                      FdOutput out(STDOUT_FILENO);
                      FdOutput err(STDERR_FILENO);
                      return Verify(options, out, err);
                    });
}

}  // namespace tracefs
