// The command tracefs-count, as its program calls it.
#pragma once

namespace tracefs {

// Returns the exit status.
int CountMain(int argc, char** argv);

}  // namespace tracefs
