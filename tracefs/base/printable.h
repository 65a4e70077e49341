// Which parts of a text people can see. Names of files, commands and
// certificates may hold any bytes: characters that a terminal, a log or a
// viewer obeys instead of showing are spelled out wherever we print.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tracefs {

// The code point at the front of `text` and its size in bytes, or size 0 if no
// valid one starts there. `text` must not be empty.
struct CodePoint {
  uint32_t value = 0;
  size_t size = 0;
};
CodePoint FirstCodePoint(std::string_view text);

// True if `text` is UTF-8 as RFC 3629 has it: shortest forms, no surrogates.
bool IsUtf8(std::string_view text);

// Characters that are obeyed instead of shown: control characters (C0, DEL,
// C1), line and paragraph ends, changes of text direction, characters without
// width.
bool IsHidden(uint32_t code_point);
// Characters that look like a blank.
bool IsBlank(uint32_t code_point);

// `text` on one line: hidden characters and bytes that are not UTF-8 as \n, \t
// or \xNN; everything else, including backslashes, unchanged. Idempotent.
std::string Printable(std::string_view text);

// JSON text with hidden characters in its strings as \uXXXX; the same document.
std::string JsonWithoutHidden(std::string json);

}  // namespace tracefs
