// The values of a document as people read them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tracefs/text/duration.h"
#include "tracefs/text/units.h"

namespace tracefs::report {

// What stands over a column of a document's values ("time" of "time_ns"), and
// how one of them is written.
std::string_view ValueHead(std::string_view key);
std::string ValueText(std::string_view key, uint64_t value);

// A text of the document that may have lines, such as arguments, as one line:
// what stands for an end of a line becomes a sign for it.
std::string OneLine(std::string_view text);

}  // namespace tracefs::report
