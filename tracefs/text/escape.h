// Escaping: bytes from a trace, which may be anything, made safe for JSON and
// for a terminal. All writers put bytes at `out`, where the caller has room as
// stated, and return the end of what they wrote.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "tracefs/base/printable.h"

namespace tracefs {

// The contents of a JSON string: at most 6 bytes a byte. `text` must be UTF-8.
// What IsHidden says is hidden is written as \uXXXX.
char* PutJsonEscaped(char* out, std::string_view text);
// As PutJsonEscaped, but nullptr if `text` is not UTF-8; what was written is
// then of no use. One pass over the common case, which needs no escaping.
char* PutJsonIfUtf8(char* out, std::string_view text);

// RFC 4648 with padding: 4 bytes for each 3 begun.
char* PutBase64(char* out, std::string_view bytes);
constexpr size_t Base64Size(size_t bytes) { return (bytes + 2) / 3 * 4; }

// For a terminal, at most 4 bytes a byte: printable text as it is; what
// IsHidden says is hidden, bytes that are not UTF-8 and backslashes as \n, \t,
// \\ or \xNN.
char* PutTerminalEscaped(char* out, std::string_view text);
// \xNN.
char* PutHexEscape(char* out, char byte);
// The same in double quotes where the reader could not see its ends (it is
// empty, or has blanks, quotes or one of `more`): at most 4 bytes a byte and 2.
char* PutTerminalWord(char* out, std::string_view text,
                      std::string_view more = {});

std::string TerminalWord(std::string_view text, std::string_view more = {});
// PutTerminalEscaped, as a string.
std::string TerminalText(std::string_view text);

// False: neither JSON nor a terminal needs anything escaped in it. True: one of
// them may.
bool MayNeedEscapes(std::string_view text);

// Any bytes as UTF-8.
std::string Utf8Text(std::string_view bytes);

}  // namespace tracefs
