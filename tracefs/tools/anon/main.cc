// tracefs-anon: writes traces anew so that they can be shared. See anon.h;
// docs/man/tracefs-anon.1.
#include <signal.h>

#include <cerrno>
#include <cstdio>

#include "tracefs/tools/anon/anon.h"
#include "tracefs/tools/anon/options.h"

int main(int argc, char** argv) {
  using namespace tracefs;  // NOLINT: a main
  const auto options = anonymize::ParseAnonOptions(argc, argv);
  Status status = options.status();
  std::string out;
  bool to_stderr = false;
  if (options.ok() && options->help) {
    out = anonymize::AnonHelp();
  } else if (options.ok() && options->version) {
    out = "tracefs-anon " TRACEFS_VERSION "\n";
  } else if (options.ok()) {
    // A reader that goes away shows as EPIPE, a limit as EFBIG.
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    status = anonymize::RunAnon(*options, &out);
    to_stderr = options->mode == anonymize::AnonOptions::Mode::kHide ||
                options->mode == anonymize::AnonOptions::Mode::kReveal;
  }
  const bool said = std::fputs(out.c_str(), to_stderr ? stderr : stdout) >= 0 &&
                    std::fflush(stdout) == 0;
  if (!said && status.ok()) status = Status::System(errno, "standard output");
  if (!status.ok()) {
    std::fprintf(stderr, "tracefs-anon: %s\n", status.message().c_str());
  }
  return ExitStatus(status);
}
