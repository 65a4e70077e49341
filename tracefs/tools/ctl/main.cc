// tracefs-ctl: asks and steers a running mount. See ctl.h; docs/man/
// tracefs-ctl.1.
#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "tracefs/export/output_buffer.h"
#include "tracefs/tools/ctl/ctl.h"
#include "tracefs/tools/ctl/options.h"

namespace {

std::atomic<bool> g_stop = false;
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

int main(int argc, char** argv) {
  tracefs::FdOutput out(STDOUT_FILENO);
  tracefs::FdOutput err(STDERR_FILENO);
  const auto options = tracefs::ParseCtlOptions(argc, argv);
  if (!options.ok()) {
    err.Append("tracefs-ctl: " + options.status().message() + "\n");
    static_cast<void>(err.Flush());
    return tracefs::ExitStatus(options.status());
  }
  if (options->help || options->version) {
    out.Append(options->help ? tracefs::CtlHelp()
                             : "tracefs-ctl " TRACEFS_VERSION "\n");
    return tracefs::ExitStatus(out.Flush());
  }
  // A reader that goes away shows as EPIPE.
  signal(SIGPIPE, SIG_IGN);
  const auto command = options->command;
  if (command == tracefs::CtlCommand::kTail ||
      command == tracefs::CtlCommand::kTop || options->follow) {
    // The first one ends it in order, a second one at once.
    struct sigaction action = {};
    action.sa_handler = [](int) { g_stop = true; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
  }
  return tracefs::Ctl(*options, out, err, g_stop);
}
