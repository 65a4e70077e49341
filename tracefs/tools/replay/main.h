// The command tracefs-replay, as its program calls it.
#pragma once

namespace tracefs {

// Returns the exit status.
int ReplayMain(int argc, char** argv);

}  // namespace tracefs
