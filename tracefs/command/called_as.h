// A program that is several commands: most of their code is the same, and need
// not be on the disk for each of them.
#pragma once

#include <span>
#include <string_view>

namespace tracefs {

struct CalledAs {
  std::string_view name;  // "tracefs-dump"
  int (*main)(int argc, char** argv);
};

// That of the command whose name the program was started by: of the file, or
// where that tells nothing (a descriptor was executed, or a loader called) of
// its argument 0. The first of `commands` if both are others. For main() alone.
const CalledAs& WhatWeAreCalled(std::span<const CalledAs> commands, int argc,
                                char** argv);

}  // namespace tracefs
