// tracefs-anon: rewrites traces so that they can be shared. See anon.h;
// docs/man/tracefs-anon.1.
#include "tracefs/tools/anon/main.h"

#include <unistd.h>

#include "tracefs/base/file_io.h"
#include "tracefs/command/front.h"
#include "tracefs/tools/anon/anon.h"
#include "tracefs/tools/anon/options.h"

namespace tracefs::anonymize {
namespace {

int Run(const AnonOptions& options) {
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

namespace tracefs {

int AnonMain(int argc, char** argv) {
  return RunCommand({"tracefs-anon", &anonymize::AnonHelp},
                    anonymize::ParseAnonOptions(argc, argv), &anonymize::Run);
}

}  // namespace tracefs
