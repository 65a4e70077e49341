// How many cells of a terminal text takes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tracefs {

// 2 of East Asian wide characters and most emoji, 0 of combining marks.
size_t WidthOf(uint32_t code_point);
size_t WidthOf(std::string_view text);

// So many cells wide, with blanks before or behind the text; no shorter than it
// is.
std::string PadFront(std::string_view text, size_t width);
std::string PadEnd(std::string_view text, size_t width);

// The beginning and the end, with "…" between, where it is wider than that.
std::string CutMiddle(std::string_view text, size_t width);

// As much of the beginning, or of the end, as fits into so many cells.
std::string_view CutEnd(std::string_view text, size_t width);
std::string_view CutFront(std::string_view text, size_t width);

// The end of what SafeWord gave, after "...": in quotes if that was.
std::string CutWord(const std::string& word, size_t width);

// Whether the environment's locale has UTF-8.
bool HasUtf8();
// A text of ours with a number and its unit: without UTF-8 its µs are us.
std::string UnitForTerminal(std::string text, bool utf8);

// Any bytes, made safe for a terminal: PutTerminalEscaped; where it has no
// UTF-8, all that is not ASCII as \xNN.
std::string SafeText(std::string_view bytes, bool utf8);
// The same in quotes where the reader could not see its ends.
std::string SafeWord(std::string_view bytes, bool utf8);
// Text that is escaped already, for such a terminal; what is not, is escaped
// but for backslashes.
std::string ForTerminal(std::string_view text, bool utf8);

}  // namespace tracefs
