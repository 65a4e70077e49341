// tracefs-run: runs a command with its directory under Tracefs.
#include "tracefs/command/front.h"
#include "tracefs/mount/run_command.h"
#include "tracefs/mount/run_options.h"
#include "tracefs/tracers/plan.h"

int main(int argc, char** argv) {
  using namespace tracefs;  // NOLINT: a main
  return RunCommand({"tracefs-run", &RunHelpText}, ParseRunOptions(argc, argv),
                    &RunCommandTraced);
}
