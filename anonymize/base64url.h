// base64url without padding (RFC 4648, section 5): bytes as text that may stand
// in a file name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/bytes.h"

namespace tracefs::anonymize {

void AppendBase64url(ByteSpan bytes, std::string* out);
// False if `text` is not what AppendBase64url makes.
bool FromBase64url(std::string_view text, std::vector<std::byte>* bytes);
bool IsBase64url(char c);
inline constexpr size_t Base64urlSize(size_t bytes) {
  return bytes / 3 * 4 + (bytes % 3 == 0 ? 0 : bytes % 3 + 1);
}

}  // namespace tracefs::anonymize
