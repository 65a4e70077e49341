// How many cells of a terminal text takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tracefs::screen {

// 2 of East Asian wide characters and most emoji, 0 of combining marks.
size_t WidthOf(uint32_t code_point);
size_t WidthOf(std::string_view text);

// As much of the beginning, or of the end, as fits into so many cells.
std::string_view CutEnd(std::string_view text, size_t width);
std::string_view CutFront(std::string_view text, size_t width);

// The end of what SafeWord gave, after "...": in quotes if that was.
std::string CutWord(const std::string& word, size_t width);

// Any bytes, made safe for a terminal: PutTerminalEscaped; where it has no
// UTF-8, all that is not ASCII as \xNN.
std::string SafeText(std::string_view bytes, bool utf8);
// The same in quotes where the reader could not see its ends.
std::string SafeWord(std::string_view bytes, bool utf8);
// Text that is escaped already, for such a terminal; what is not, is escaped
// but for backslashes.
std::string ForTerminal(std::string_view text, bool utf8);

}  // namespace tracefs::screen
