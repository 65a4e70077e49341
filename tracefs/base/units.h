// Numbers as people write them in configs and filters, "262144", "0x40",
// "256K", "250ms", and read them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tracefs {

// Decimal or 0x… hexadecimal, nothing else around it. Nothing on anything
// malformed and on what 64 bits cannot hold; so do the others here. A leading 0
// is malformed: it means octal to some and decimal to others.
std::optional<uint64_t> ParseUnsigned(std::string_view text);

// As above, or a decimal number with K, M, G or T (either case): powers of
// 1024.
std::optional<uint64_t> ParseSize(std::string_view text);

// Nanoseconds: a decimal number, which may have a fraction ("0.3s"), with ns,
// us, ms, s, m (minutes) or h; or 0. Nothing on parts of a nanosecond.
std::optional<uint64_t> ParseDuration(std::string_view text);

// A time or a difference in seconds, "-0.000000001".
std::string SecondsText(int64_t ns);

}  // namespace tracefs
