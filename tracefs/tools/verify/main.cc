// tracefs-verify: says what traces are worth as evidence. See verify.h;
// docs/man/tracefs-verify.1.
#include <signal.h>
#include <unistd.h>

#include "tracefs/tools/verify/verify.h"

int main(int argc, char** argv) {
  tracefs::FdOutput out(STDOUT_FILENO);
  tracefs::FdOutput err(STDERR_FILENO);
  const auto options = tracefs::ParseVerifyOptions(argc, argv);
  if (!options.ok()) {
    err.Append("tracefs-verify: " + options.status().message() + "\n");
    (void)err.Flush();
    return tracefs::ExitStatus(options.status());
  }
  if (options->help || options->version) {
    out.Append(options->help ? tracefs::VerifyHelp()
                             : "tracefs-verify " TRACEFS_VERSION "\n");
    return tracefs::ExitStatus(out.Flush());
  }
  signal(SIGPIPE, SIG_IGN);
  return tracefs::Verify(*options, out, err);
}
