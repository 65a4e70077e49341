// The command tracefs-verify, as its program calls it.
#pragma once

namespace tracefs {

// Returns the exit status.
int VerifyMain(int argc, char** argv);

}  // namespace tracefs
