// The command tracefs-anon, as its program calls it.
#pragma once

namespace tracefs {

// Returns the exit status.
int AnonMain(int argc, char** argv);

}  // namespace tracefs
