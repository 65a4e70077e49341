// The command tracefs-deps, as its program calls it.
#pragma once

namespace tracefs {

// What its messages begin with.
inline constexpr char kDepsSays[] = "tracefs-deps: ";

// Returns the exit status.
int DepsMain(int argc, char** argv);

}  // namespace tracefs
