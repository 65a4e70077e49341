// Pieces of a text, none of them copied.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <system_error>

namespace tracefs {

inline constexpr std::string_view kDecimalDigits = "0123456789";
inline constexpr std::string_view kHexDigits = "0123456789abcdef";

// Whether there is no character in `text` but those in `characters`.
inline bool IsMadeOf(std::string_view text, std::string_view characters) {
  return text.find_first_not_of(characters) == text.npos;
}

// `text` without the blanks, tabs and line ends around it.
inline std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

// Takes off `text` what stands before the first `separator`, and that; all of
// it if there is none.
inline std::string_view TakeUpTo(std::string_view& text, char separator) {
  const size_t end = std::min(text.find(separator), text.size());
  const std::string_view taken = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return taken;
}

// Takes `prefix` off `text`; false, and nothing is taken, if it does not begin
// so.
inline bool TakePrefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

// Takes a decimal number off `text`; false, and nothing is taken, if it begins
// with none, or with one that does not fit.
template <typename T>
bool TakeDecimal(std::string_view& text, T* value) {
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), *value);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return true;
}

}  // namespace tracefs
