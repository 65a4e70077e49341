// The command tracefs-import, as its program calls it.
#pragma once

namespace tracefs {

// Returns the exit status.
int ImportMain(int argc, char** argv);

}  // namespace tracefs
