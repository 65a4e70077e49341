#include "tracefs/base/crc32c.h"

#include <array>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace tracefs {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // its lowest power in bit 31

// The product of two polynomials, modulo that one.
uint32_t Product(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = uint32_t{1} << 31; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = (b & 1) != 0 ? (b >> 1) ^ kPolynomial : b >> 1;
  }
  return product;
}

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t c = i;
    for (int k = 0; k < 8; ++k) c = (c & 1) ? (c >> 1) ^ kPolynomial : c >> 1;
    table[i] = c;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = MakeTable();

uint32_t Portable(ByteSpan bytes, uint32_t crc) {
  for (const std::byte b : bytes) {
    crc = kTable[(crc ^ std::to_integer<uint32_t>(b)) & 0xff] ^ (crc >> 8);
  }
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t Hardware(ByteSpan bytes,
                                                    uint32_t crc) {
  uint64_t state = crc;
  size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    state = _mm_crc32_u64(state, LoadLe<uint64_t>(bytes.data() + i));
  }
  auto narrow = static_cast<uint32_t>(state);
  for (; i < bytes.size(); ++i) {
    narrow = _mm_crc32_u8(narrow, std::to_integer<uint8_t>(bytes[i]));
  }
  return narrow;
}
#endif

}  // namespace

uint32_t Crc32c(ByteSpan bytes, uint32_t crc) {
#if defined(__x86_64__)
  static const bool has_sse42 = __builtin_cpu_supports("sse4.2");
  if (has_sse42) return ~Hardware(bytes, ~crc);
#endif
  return ~Portable(bytes, ~crc);
}

uint32_t Crc32cZeros(uint64_t count, uint32_t crc) {
  uint32_t power = uint32_t{1} << 23;  // x^8: one byte further
  uint32_t state = ~crc;
  for (; count != 0; count >>= 1) {
    if ((count & 1) != 0) state = Product(power, state);
    power = Product(power, power);
  }
  return ~state;
}

}  // namespace tracefs
