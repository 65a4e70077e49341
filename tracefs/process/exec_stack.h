// The stack that execve(2) makes for a program, as a tracepoint samples it
// while the process is still in the call: the one place where arguments are
// whole and nobody can have changed them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tracefs/base/bytes.h"

namespace tracefs {

// What follows the raw part of a sample with the stack pointer and the stack:
// each argument with its NUL. Nothing if it is of a 32-bit program, or not all
// of it was sampled: that ends at a page that was never touched, and the random
// gap below the arguments has one in two of five cases.
std::optional<std::string> ArgumentsOnStack(ByteSpan sampled);

}  // namespace tracefs
