// The command tracefs-ctl, as its program calls it.
#pragma once

namespace tracefs {

// Returns the exit status.
int CtlMain(int argc, char** argv);

}  // namespace tracefs
