// Decimal numbers, two digits at a time from a table; about 1 ns a digit pair.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "tracefs/base/bytes.h"

namespace tracefs {

inline constexpr size_t kMaxDecimal = 20;  // characters

namespace internal {
inline constexpr std::array<char, 200> kDigitPairs = [] {
  std::array<char, 200> pairs{};
  for (int i = 0; i < 100; ++i) {
    pairs[2 * i] = static_cast<char>('0' + i / 10);
    pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}();
}  // namespace internal

// The last two digits of `value` at `out`.
inline void PutTwoDigits(char* out, uint32_t value) {
  std::memcpy(out, &internal::kDigitPairs[2 * value], 2);
}

// `value` < 100,000,000 as exactly eight digits.
inline void PutEightDigits(char* out, uint32_t value) {
  const uint32_t high = value / 10'000;
  const uint32_t low = value % 10'000;
  PutTwoDigits(out, high / 100);
  PutTwoDigits(out + 2, high % 100);
  PutTwoDigits(out + 4, low / 100);
  PutTwoDigits(out + 6, low % 100);
}

// At most kMaxDecimal characters, all of which there must be room for; returns
// the end.
inline char* PutDecimal(char* out, uint64_t value) {
  constexpr uint64_t kEight = 100'000'000;
  if (value >= kEight) {
    out = PutDecimal(out, value / kEight);
    PutEightDigits(out, static_cast<uint32_t>(value % kEight));
    return out + 8;
  }
  if (value < 10) {
    *out = static_cast<char>('0' + value);
    return out + 1;
  }
  char digits[8];
  PutEightDigits(digits, static_cast<uint32_t>(value));
  // Without its leading zeros: the first digit is in the lowest byte.
  const auto text = LoadLe<uint64_t>(digits);
  const int zeros = std::countr_zero(text ^ 0x3030303030303030) / 8;
  StoreLe<uint64_t>(out, text >> (8 * zeros));
  return out + 8 - zeros;
}

inline char* PutSignedDecimal(char* out, int64_t value) {
  if (value >= 0) return PutDecimal(out, static_cast<uint64_t>(value));
  *out++ = '-';
  return PutDecimal(out, -static_cast<uint64_t>(value));
}

}  // namespace tracefs
