// The command tracefs-deps, as its program calls it.
#pragma once

namespace tracefs {

// Returns the exit status.
int DepsMain(int argc, char** argv);

}  // namespace tracefs
