// tracefs-dump: prints traces. See dump.h; docs/man/tracefs-dump.1.
#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "tracefs/export/output_buffer.h"
#include "tracefs/format/constants.h"
#include "tracefs/tools/dump/dump.h"
#include "tracefs/tools/dump/options.h"

namespace {

std::atomic<bool> g_stop = false;
static_assert(std::atomic<bool>::is_always_lock_free);

}  // namespace

int main(int argc, char** argv) {
  tracefs::FdOutput out(STDOUT_FILENO);
  tracefs::FdOutput err(STDERR_FILENO);
  const auto options = tracefs::ParseDumpOptions(argc, argv);
  if (!options.ok()) {
    err.Append("tracefs-dump: " + options.status().message() + "\n");
    (void)err.Flush();
    return tracefs::ExitStatus(options.status());
  }
  if (options->help || options->version) {
    out.Append(options->help
                   ? tracefs::DumpHelp()
                   : "tracefs-dump " TRACEFS_VERSION
                     ", reads trace format versions up to " +
                         std::to_string(tracefs::format::kFormatVersion) +
                         "\n");
    return tracefs::ExitStatus(out.Flush());
  }
  // A reader that goes away shows as EPIPE.
  signal(SIGPIPE, SIG_IGN);
  if (options->follow || options->wait) {
    // The first one ends the listing in order, a second one at once.
    struct sigaction action = {};
    action.sa_handler = [](int) { g_stop = true; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, nullptr);
    sigaction(SIGTERM, &action, nullptr);
  }
  return tracefs::Dump(*options, out, err, g_stop);
}
