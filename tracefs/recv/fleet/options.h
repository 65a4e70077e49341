// The options of tracefs-recv --from.
#pragma once

#include "tracefs/command/command_line.h"
#include "tracefs/recv/fleet/run.h"

namespace tracefs {

// For --help.
OptionGroup FleetOptionRows();

// What was given. `keys` are read by who runs it. kInvalid, with what is
// expected.
Result<FleetOptions> ParseFleetOptions(const CommandLine& given);
// kInvalid if one of them is given without --from.
Status CheckNoFleetOptions(const CommandLine& given);

}  // namespace tracefs
