// tracefs-verify: says what traces are worth as evidence. See verify.h;
// docs/man/tracefs-verify.1.
#include <signal.h>
#include <unistd.h>

#include "tracefs/command/front.h"
#include "tracefs/tools/verify/verify.h"

int main(int argc, char** argv) {
  using namespace tracefs;  // NOLINT: a main
  return RunCommand({"tracefs-verify", &VerifyHelp},
                    ParseVerifyOptions(argc, argv),
                    [](const VerifyOptions& options) {
                      ::signal(SIGPIPE, SIG_IGN);
                      FdOutput out(STDOUT_FILENO);
                      FdOutput err(STDERR_FILENO);
                      return Verify(options, out, err);
                    });
}
