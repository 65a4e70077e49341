// Escaping: bytes from a trace, which may be anything, made safe for JSON and
// for a terminal. All writers put bytes at `out`, where the caller has room as
// stated, and return the end of what they wrote.
#ifndef TRACEFS_EXPORT_ESCAPE_H_
#define TRACEFS_EXPORT_ESCAPE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tracefs {

// True if `text` is UTF-8 as RFC 3629 has it: shortest forms, no surrogates.
bool IsUtf8(std::string_view text);

// The code point at the front of `text` and its size in bytes, or size 0 if no
// valid one starts there. `text` must not be empty.
struct CodePoint {
  uint32_t value = 0;
  size_t size = 0;
};
CodePoint FirstCodePoint(std::string_view text);

// The contents of a JSON string: at most 6 bytes a byte. `text` must be UTF-8.
char* PutJsonEscaped(char* out, std::string_view text);
// As PutJsonEscaped, but nullptr if `text` is not UTF-8; what was written is
// then of no use. One pass over the common case, which needs no escaping.
char* PutJsonIfUtf8(char* out, std::string_view text);

// RFC 4648 with padding: 4 bytes for each 3 begun.
char* PutBase64(char* out, std::string_view bytes);
constexpr size_t Base64Size(size_t bytes) { return (bytes + 2) / 3 * 4; }

// For a terminal, at most 4 bytes a byte: printable text as it is; control
// characters, characters that turn the direction of text, bytes that are not
// UTF-8 and backslashes as \n, \t, \\ or \xNN.
char* PutTerminalEscaped(char* out, std::string_view text);
// The same in double quotes where the reader could not see its ends (it is
// empty, or has blanks or quotes): at most 4 bytes a byte and 2.
char* PutTerminalWord(char* out, std::string_view text);

std::string TerminalWord(std::string_view text);

}  // namespace tracefs

#endif  // TRACEFS_EXPORT_ESCAPE_H_
