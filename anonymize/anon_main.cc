// tracefs-anon: writes traces anew so that they can be shared. See anon.h;
// docs/man/tracefs-anon.1.
#include <signal.h>

#include <cstdio>

#include "anonymize/anon.h"
#include "anonymize/options.h"

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
    // A reader that goes away shows as EPIPE.
    signal(SIGPIPE, SIG_IGN);
    status = anonymize::RunAnon(*options, &out);
    to_stderr = options->mode == anonymize::AnonOptions::Mode::kHide ||
                options->mode == anonymize::AnonOptions::Mode::kReveal;
  }
  std::fputs(out.c_str(), to_stderr ? stderr : stdout);
  if (!status.ok()) {
    std::fflush(stdout);
    std::fprintf(stderr, "tracefs-anon: %s\n", status.message().c_str());
  }
  return ExitStatus(status);
}
