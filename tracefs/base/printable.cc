#include "tracefs/base/printable.h"

#include <algorithm>

#include "tracefs/base/text.h"

namespace tracefs {
namespace {

struct Range {
  uint32_t first;
  uint32_t last;
};
constexpr Range kHidden[] = {
    {0x00, 0x1f},      {0x7f, 0x9f},      // C0, DEL, C1
    {0xad, 0xad},                         // a hyphen that may not show
    {0x61c, 0x61c},                       // direction, Arabic
    {0x180e, 0x180e},  {0x200b, 0x200f},  // no width; direction
    {0x2028, 0x202e},                     // line ends; direction
    {0x2060, 0x206f},                     // no width; direction; deprecated
    {0xfeff, 0xfeff},  {0xfff9, 0xfffb},  // byte order; annotations
    {0xe0000, 0xe007f}};                  // tags: a text nobody sees
constexpr Range kBlanks[] = {
    {0x20, 0x20},     {0xa0, 0xa0},     {0x1680, 0x1680}, {0x2000, 0x200a},
    {0x202f, 0x202f}, {0x205f, 0x205f}, {0x2800, 0x2800}, {0x3000, 0x3000}};

template <size_t kSize>
bool IsIn(const Range (&ranges)[kSize], uint32_t c) {
  return std::any_of(std::begin(ranges), std::end(ranges), [c](const Range& r) {
    return c >= r.first && c <= r.last;
  });
}

// \uXXXX, of one half of a pair where there must be two.
void AppendUnit(uint32_t unit, std::string* out) {
  *out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) {
    *out += kHexDigits[unit >> shift & 15];
  }
}

}  // namespace

CodePoint FirstCodePoint(std::string_view text) {
  const auto byte = [text](size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
  };
  const auto tail = [&byte](size_t i) { return (byte(i) & 0xc0) == 0x80; };
  const uint32_t c = byte(0);
  if (c < 0x80) return {c, 1};
  if (c >= 0xc2 && c < 0xe0 && tail(1)) {
    return {(c & 0x1f) << 6 | (byte(1) & 0x3f), 2};
  }
  if (c >= 0xe0 && c < 0xf0 && tail(1) && tail(2)) {
    const uint32_t value =
        (c & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
    if (value >= 0x800 && (value < 0xd800 || value > 0xdfff)) {
      return {value, 3};
    }
  }
  if (c >= 0xf0 && c < 0xf5 && tail(1) && tail(2) && tail(3)) {
    const uint32_t value = (c & 0x07) << 18 | (byte(1) & 0x3f) << 12 |
                           (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f);
    if (value >= 0x10000 && value <= 0x10ffff) return {value, 4};
  }
  return {};
}

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const CodePoint point = FirstCodePoint(text);
    if (point.size == 0) return false;
    text.remove_prefix(point.size);
  }
  return true;
}

bool IsHidden(uint32_t c) {
  if (c < 0x80) return c < 0x20 || c == 0x7f;  // nearly always
  return IsIn(kHidden, c);
}

bool IsBlank(uint32_t c) { return IsIn(kBlanks, c); }

std::string Printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint point = FirstCodePoint(text);
    const size_t size = std::max<size_t>(point.size, 1);
    if (point.size != 0 && !IsHidden(point.value)) {
      out += text.substr(0, size);
    } else if (text.front() == '\n' || text.front() == '\t') {
      out += text.front() == '\n' ? "\\n" : "\\t";
    } else {
      for (const char c : text.substr(0, size)) {
        const auto byte = static_cast<unsigned char>(c);
        out += "\\x";
        out += kHexDigits[byte >> 4];
        out += kHexDigits[byte & 15];
      }
    }
    text.remove_prefix(size);
  }
  return out;
}

std::string JsonWithoutHidden(std::string json) {
  const auto plain = [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x7f;  // those below 0x20 are between strings, or escaped
  };
  if (std::all_of(json.begin(), json.end(), plain)) return json;
  std::string out;
  out.reserve(json.size());
  for (std::string_view text = json; !text.empty();) {
    const CodePoint point = FirstCodePoint(text);
    const size_t size = std::max<size_t>(point.size, 1);
    if (point.value < 0x7f || !IsHidden(point.value)) {
      out += text.substr(0, size);
    } else if (point.value < 0x10000) {
      AppendUnit(point.value, &out);
    } else {
      AppendUnit(0xd800 + ((point.value - 0x10000) >> 10), &out);
      AppendUnit(0xdc00 + ((point.value - 0x10000) & 0x3ff), &out);
    }
    text.remove_prefix(size);
  }
  return out;
}

}  // namespace tracefs
