// The command tracefs-replay, as its program calls it.
#pragma once

namespace tracefs {

inline constexpr char kReplaySays[] = "tracefs-replay: ";

// Returns the exit status.
int ReplayMain(int argc, char** argv);

}  // namespace tracefs
