// tracefs-deps: what files were made from. See deps.h; docs/man/tracefs-deps.1.
#include "tracefs/tools/deps/main.h"

#include <unistd.h>

#include "tracefs/command/front.h"
#include "tracefs/command/paged_output.h"
#include "tracefs/tools/deps/deps.h"

namespace tracefs {

int DepsMain(int argc, char** argv) {
  return RunCommand({"tracefs-deps", &DepsHelp}, ParseDepsOptions(argc, argv),
                    [](const DepsOptions& options) {
                      PagedOutput out(options.pager);
                      FdOutput err(STDERR_FILENO);
                      return Deps(options, out, err);
                    });
}

}  // namespace tracefs
