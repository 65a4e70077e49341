// The command tracefs-keygen, as its program calls it.
#pragma once

namespace tracefs {

// Returns the exit status.
int KeygenMain(int argc, char** argv);

}  // namespace tracefs
