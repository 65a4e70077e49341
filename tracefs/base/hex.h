// Bytes as two digits each, "0f", and back.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "tracefs/base/bytes.h"

namespace tracefs {

std::string Hex(ByteSpan bytes);
void AppendHex(ByteSpan bytes, std::string* text);
// Writes the bytes that `digits` stand for. False unless they are exactly as
// many as `out` takes.
bool FromHex(std::string_view digits, std::span<std::byte> out);

}  // namespace tracefs
