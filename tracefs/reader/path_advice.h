// Advice to who filters by paths of the machine: those of a trace begin at its
// mount.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tracefs/reader/trace_set.h"

namespace tracefs::reader {

// A sentence for each such path in a filter that compiles, once traces are read
// as far as their headers. `origin`: "--filter".
std::vector<std::string> AdviceOnPaths(std::string_view filter,
                                       std::string_view origin,
                                       const TraceSet& traces);

}  // namespace tracefs::reader
