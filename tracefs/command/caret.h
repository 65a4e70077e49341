// Caret: shows the place that a message about a config or a filter names.
#pragma once

#include <string>
#include <string_view>

namespace tracefs {

// Of "FILE:LINE:COLUMN: …" that line and a ^ below the place, each ended, where
// FILE can be read again; of "--filter:LINE:COLUMN: …" the line of `filter`.
// Empty for all else. A long line is cut around the place.
std::string CaretLines(std::string_view message, std::string_view filter);

// The same if standard error is a terminal, else empty: programs read lines.
std::string CaretOnTerminal(std::string_view message,
                            std::string_view filter = {});

}  // namespace tracefs
