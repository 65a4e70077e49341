// What a trace cannot tell by the way it was recorded: said wherever an answer
// is that something was not seen.
#pragma once

#include <string>
#include <vector>

#include "tracefs/format/record.h"

namespace tracefs::reader {

// A sentence each, without the name of the trace: about its filter, its
// visibility, and what was lost. Texts of the trace are escaped.
std::vector<std::string> LimitsOf(const format::TraceContext& trace);

}  // namespace tracefs::reader
