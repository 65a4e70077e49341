// The command tracefs-dump, as its program calls it.
#pragma once

namespace tracefs {

// Returns the exit status.
int DumpMain(int argc, char** argv);

}  // namespace tracefs
