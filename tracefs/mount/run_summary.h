// What tracefs-run prints about a trace at its end.
#pragma once

#include <cstdint>
#include <string>

#include "tracefs/base/status.h"

namespace tracefs {

// What is not in the trace itself.
struct RunFacts {
  uint64_t elapsed_ns = 0;
  std::string command;    // for the first line
  std::string trace;      // its name, for commands that ask it
  std::string processes;  // a remark; may be empty
  std::string added;      // what it holds besides; may be empty
};

// Reads the trace, once, and sums it up: its headline, operations by kind with
// errors, bytes and times, the slowest ones, the most used files, processes,
// losses, and what is invisible. kCorrupt if it cannot be read to its end.
Result<std::string> SummaryOf(const std::string& trace, const RunFacts& facts);

}  // namespace tracefs
