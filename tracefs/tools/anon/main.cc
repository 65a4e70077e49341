// tracefs-anon: writes traces anew so that they can be shared. See anon.h;
// docs/man/tracefs-anon.1.
#include <signal.h>
#include <unistd.h>

#include "tracefs/base/file_io.h"
#include "tracefs/command/front.h"
#include "tracefs/tools/anon/anon.h"
#include "tracefs/tools/anon/options.h"

namespace tracefs::anonymize {
namespace {

int Run(const AnonOptions& options) {
  // A reader that goes away shows as EPIPE, a limit as EFBIG.
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  std::string text;
  Status status = RunAnon(options, &text);
  const bool to_stderr = options.mode == AnonOptions::Mode::kHide ||
                         options.mode == AnonOptions::Mode::kReveal;
  const Status said =
      to_stderr ? WriteAll(STDERR_FILENO, AsBytes(text), "standard error")
                : WriteAll(STDOUT_FILENO, AsBytes(text), "standard output");
  return Finish("tracefs-anon", status.ok() ? said : status);
}

}  // namespace
}  // namespace tracefs::anonymize

int main(int argc, char** argv) {
  using namespace tracefs::anonymize;  // NOLINT: a main
  return tracefs::RunCommand({"tracefs-anon", &AnonHelp},
                             ParseAnonOptions(argc, argv), &Run);
}
