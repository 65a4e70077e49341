#include "tracefs/text/cell_width.h"

#include <stdlib.h>

#include <algorithm>
#include <iterator>

#include "tracefs/base/printable.h"
#include "tracefs/text/cell_ranges.h"
#include "tracefs/text/escape.h"

namespace tracefs {
namespace {

template <size_t kRanges>
bool IsIn(uint32_t c, const CellRange (&ranges)[kRanges]) {
  const auto* const found =
      std::upper_bound(std::begin(ranges), std::end(ranges), c,
                       [](uint32_t point, const CellRange& range) {
                         return point < range.first;
                       });
  return found != std::begin(ranges) && c <= std::prev(found)->last;
}

}  // namespace

size_t WidthOf(uint32_t code_point) {
  if (code_point < 0x300) return 1;
  if (IsIn(code_point, kNoCell)) return 0;
  return IsIn(code_point, kTwoCells) ? 2 : 1;
}

size_t WidthOf(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) {
    const CodePoint point = FirstCodePoint(text);
    width += point.size == 0 ? 1 : WidthOf(point.value);
    text.remove_prefix(std::max<size_t>(point.size, 1));
  }
  return width;
}

std::string PadFront(std::string_view text, size_t width) {
  const size_t own = WidthOf(text);
  return std::string(width > own ? width - own : 0, ' ') + std::string(text);
}

std::string PadEnd(std::string_view text, size_t width) {
  const size_t own = WidthOf(text);
  return std::string(text) + std::string(width > own ? width - own : 0, ' ');
}

std::string CutMiddle(std::string_view text, size_t width) {
  if (WidthOf(text) <= width) return std::string(text);
  if (width == 0) return {};
  const size_t end = (width - 1) / 2;
  return std::string(CutEnd(text, width - 1 - end)) + "…" +
         std::string(CutFront(text, end));
}

std::string_view CutEnd(std::string_view text, size_t width) {
  std::string_view rest = text;
  size_t used = 0;
  while (!rest.empty()) {
    const CodePoint point = FirstCodePoint(rest);
    used += point.size == 0 ? 1 : WidthOf(point.value);
    if (used > width) break;
    rest.remove_prefix(std::max<size_t>(point.size, 1));
  }
  return text.substr(0, text.size() - rest.size());
}

std::string_view CutFront(std::string_view text, size_t width) {
  size_t all = WidthOf(text);
  while (all > width) {
    const CodePoint point = FirstCodePoint(text);
    all -= point.size == 0 ? 1 : WidthOf(point.value);
    text.remove_prefix(std::max<size_t>(point.size, 1));
  }
  return text;
}

std::string CutWord(const std::string& word, size_t width) {
  if (WidthOf(word) <= width) return word;
  const bool quoted = word.front() == '"';
  const std::string lead = quoted ? "\"..." : "...";
  if (width < lead.size() + 2)
    return std::string(std::min<size_t>(width, 3), '.');
  std::string_view end = CutFront(word, width - lead.size());
  // A quote whose backslash was cut off would end the word.
  while (quoted && end.size() > 1 && (end[0] == '"' || end[0] == '\\')) {
    end.remove_prefix(1);
  }
  return lead + std::string(end);
}

bool HasUtf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const given = ::getenv(name);
    std::string value = given == nullptr ? "" : given;
    if (value.empty()) continue;
    for (char& c : value) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return value.find("utf-8") != std::string::npos ||
           value.find("utf8") != std::string::npos;
  }
  return false;
}

std::string UnitForTerminal(std::string text, bool utf8) {
  constexpr std::string_view kMicro = "µ";
  if (const size_t at = text.find(kMicro); !utf8 && at != text.npos) {
    text.replace(at, kMicro.size(), "u");
  }
  return text;
}

std::string SafeText(std::string_view bytes, bool utf8) {
  return ForTerminal(TerminalText(bytes), utf8);
}

std::string SafeWord(std::string_view bytes, bool utf8) {
  return ForTerminal(TerminalWord(bytes), utf8);
}

std::string ForTerminal(std::string_view text, bool utf8) {
  // Nothing changes in what is escaped; whoever forgot to is not obeyed.
  std::string safe = Printable(text);
  if (utf8) return safe;
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string ascii;
  for (const char c : safe) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x80) {
      ascii += c;
    } else {
      ((ascii += "\\x") += kHex[byte >> 4]) += kHex[byte & 15];
    }
  }
  return ascii;
}

}  // namespace tracefs
