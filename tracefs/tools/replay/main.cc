// tracefs-replay: does again what a trace says. See replay.h;
// docs/man/tracefs-replay.1.
#include "tracefs/tools/replay/main.h"

#include <unistd.h>

#include "tracefs/command/front.h"
#include "tracefs/tools/replay/replay.h"

namespace tracefs {

int ReplayMain(int argc, char** argv) {
  return RunCommand({"tracefs-replay", &ReplayHelp},
                    ParseReplayOptions(argc, argv),
                    [](const ReplayOptions& options) {
                      FdOutput out(STDOUT_FILENO);
                      FdOutput err(STDERR_FILENO);
                      return Replay(options, out, err);
                    });
}

}  // namespace tracefs
