// tracefs-dump: prints traces. See dump.h; docs/man/tracefs-dump.1.
#include "tracefs/tools/dump/main.h"

#include <unistd.h>

#include "tracefs/command/front.h"
#include "tracefs/command/paged_output.h"
#include "tracefs/format/constants.h"
#include "tracefs/text/output_buffer.h"
#include "tracefs/tools/dump/dump.h"
#include "tracefs/tools/dump/options.h"

namespace tracefs {
namespace {

std::string Version() {
  return VersionLine("tracefs-dump",
                     ", reads trace format versions up to " +
                         std::to_string(format::kFormatVersion));
}

int Run(const DumpOptions& options) {
  static const std::atomic<bool> never = false;
  // What an interrupt leaves is in order, or nothing at all.
  const bool endless = options.follow || options.wait || options.browse ||
                       !options.output.empty();
  PagedOutput out(options.pager);
  FdOutput err(STDERR_FILENO);
  return Dump(options, out, err, endless ? StopAtSignals() : never);
}

}  // namespace
int DumpMain(int argc, char** argv) {
  return RunCommand({"tracefs-dump", &DumpHelp, &Version},
                    ParseDumpOptions(argc, argv), &Run);
}

}  // namespace tracefs
