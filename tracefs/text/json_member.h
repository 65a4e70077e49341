// Members of a JSON object that is written from its front to its end.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tracefs {

// ,"key":  -- `key` has nothing to escape.
void AppendJsonKey(std::string_view key, std::string* out);
void AppendJsonNumber(std::string_view key, uint64_t number, std::string* out);
// As KEY_b64 if it is not UTF-8.
void AppendJsonText(std::string_view key, std::string_view text,
                    std::string* out);
// "text", which must be UTF-8.
void AppendJsonString(std::string_view text, std::string* out);
// "text", with U+FFFD for bytes that are not UTF-8.
std::string JsonString(std::string_view text);

}  // namespace tracefs
