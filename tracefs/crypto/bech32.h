// Bech32 (BIP 173), the text form of age's keys, without its limit on length.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tracefs/base/bytes.h"

namespace tracefs {

// Lower case. `prefix` is in lower case, too.
std::string Bech32Encode(std::string_view prefix, ByteSpan data);

// Reads text of either case, not mixed, whose prefix and number of bytes are
// the ones given. False if it is anything else or its checksum is wrong.
bool Bech32Decode(std::string_view text, std::string_view prefix,
                  std::span<std::byte> data);

}  // namespace tracefs
