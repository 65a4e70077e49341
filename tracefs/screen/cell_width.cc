#include "tracefs/screen/cell_width.h"

#include <algorithm>
#include <array>

#include "tracefs/base/printable.h"
#include "tracefs/text/escape.h"

namespace tracefs::screen {
namespace {

struct Range {
  uint32_t first;
  uint32_t last;
};

// Of Unicode's EastAsianWidth W and F, in whole blocks.
constexpr std::array kWide = {
    Range{0x1100, 0x115f},   Range{0x2e80, 0x303e},   Range{0x3041, 0xa4cf},
    Range{0xa960, 0xa97c},   Range{0xac00, 0xd7a3},   Range{0xf900, 0xfaff},
    Range{0xfe30, 0xfe6f},   Range{0xff00, 0xff60},   Range{0xffe0, 0xffe6},
    Range{0x1f300, 0x1f64f}, Range{0x1f680, 0x1f6ff}, Range{0x1f900, 0x1f9ff},
    Range{0x20000, 0x3fffd},
};
constexpr std::array kCombining = {
    Range{0x0300, 0x036f}, Range{0x0483, 0x0489}, Range{0x0591, 0x05bd},
    Range{0x064b, 0x065f}, Range{0x1ab0, 0x1aff}, Range{0x1dc0, 0x1dff},
    Range{0x20d0, 0x20ff}, Range{0xfe00, 0xfe0f}, Range{0xfe20, 0xfe2f},
};

template <size_t kRanges>
bool IsIn(uint32_t c, const std::array<Range, kRanges>& ranges) {
  return std::any_of(ranges.begin(), ranges.end(), [c](const Range& range) {
    return c >= range.first && c <= range.last;
  });
}

}  // namespace

size_t WidthOf(uint32_t code_point) {
  if (code_point < 0x300) return 1;
  if (IsIn(code_point, kCombining)) return 0;
  return IsIn(code_point, kWide) ? 2 : 1;
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

}  // namespace tracefs::screen
