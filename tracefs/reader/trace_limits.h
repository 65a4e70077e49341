// What a trace cannot tell by the way it was recorded: said wherever an answer
// is that something was not seen.
#pragma once

#include <string>
#include <vector>

#include "tracefs/format/record.h"

namespace tracefs::reader {

// A sentence each, without the name of the trace: about its filter, its
// visibility, what was lost, and numbers that are opaque. Texts of the trace
// are escaped.
std::vector<std::string> LimitsOf(const format::TraceContext& trace);

// Why files that had one inode number, or one name, may be taken for one: what
// makes, names and removes them was not recorded, or is lost. Empty: it may
// not.
std::string LimitOfFiles(const format::TraceContext& trace);

}  // namespace tracefs::reader
