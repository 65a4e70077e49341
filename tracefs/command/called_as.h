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

// The command by whose name the program was started: the name of the file, or
// where that says nothing (a descriptor was executed, or a loader called) its
// argument 0. The first of `commands` if both are others. For main() alone.
const CalledAs& WhatWeAreCalled(std::span<const CalledAs> commands, int argc,
                                char** argv);

}  // namespace tracefs
