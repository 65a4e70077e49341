// A text as TextCursor::TakeString reads it: for configs and filters that are
// printed again.
#ifndef TRACEFS_BASE_STRING_LITERAL_H_
#define TRACEFS_BASE_STRING_LITERAL_H_

#include <string>
#include <string_view>

namespace tracefs {

inline std::string StringLiteral(std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') quoted += '\\';
    if (byte < 0x20 || byte == 0x7f) {
      quoted += "\\x";
      quoted += kDigits[byte >> 4];
      quoted += kDigits[byte & 15];
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

}  // namespace tracefs

#endif  // TRACEFS_BASE_STRING_LITERAL_H_
