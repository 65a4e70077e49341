// The command tracefs-dump, as its program calls it.
#pragma once

namespace tracefs {

// What its messages begin with.
inline constexpr char kDumpSays[] = "tracefs-dump: ";

// Returns the exit status.
int DumpMain(int argc, char** argv);

}  // namespace tracefs
