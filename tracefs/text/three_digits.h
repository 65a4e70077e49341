// The digits of numbers with a unit.
#pragma once

#include <cstdint>

#include "tracefs/text/decimal.h"

namespace tracefs {

// `value` in units of `factor`, a power of ten or a multiple of 100: three
// digits, the rest of them cut; more where there are more before the point, and
// none after it where the factor is 1. At most 22 characters; returns the end.
inline char* PutThreeDigits(char* out, uint64_t value, uint64_t factor) {
  const uint64_t whole = value / factor;
  out = PutDecimal(out, whole);
  if (whole >= 100 || factor < 100) return out;
  const uint64_t hundredths = value % factor / (factor / 100);
  *out++ = '.';
  *out++ = static_cast<char>('0' + hundredths / 10);
  if (whole < 10) *out++ = static_cast<char>('0' + hundredths % 10);
  return out;
}

}  // namespace tracefs
