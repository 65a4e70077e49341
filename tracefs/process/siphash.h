// SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed 64-bit hash under which
// nobody who does not know the key can make two inputs collide.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "tracefs/base/bytes.h"

namespace tracefs {

inline uint64_t SipHash24(const std::array<uint64_t, 2>& key, ByteSpan bytes) {
  uint64_t v0 = key[0] ^ 0x736f6d6570736575;
  uint64_t v1 = key[1] ^ 0x646f72616e646f6d;
  uint64_t v2 = key[0] ^ 0x6c7967656e657261;
  uint64_t v3 = key[1] ^ 0x7465646279746573;
  const auto rounds = [&](int n) {
    for (int i = 0; i < n; ++i) {
      v0 += v1;
      v1 = std::rotl(v1, 13) ^ v0;
      v0 = std::rotl(v0, 32);
      v2 += v3;
      v3 = std::rotl(v3, 16) ^ v2;
      v0 += v3;
      v3 = std::rotl(v3, 21) ^ v0;
      v2 += v1;
      v1 = std::rotl(v1, 17) ^ v2;
      v2 = std::rotl(v2, 32);
    }
  };
  size_t at = 0;
  for (; at + 8 <= bytes.size(); at += 8) {
    const auto word = LoadLe<uint64_t>(bytes.data() + at);
    v3 ^= word;
    rounds(2);
    v0 ^= word;
  }
  uint64_t last = static_cast<uint64_t>(bytes.size()) << 56;
  for (size_t i = 0; at + i < bytes.size(); ++i) {
    last |= static_cast<uint64_t>(bytes[at + i]) << (8 * i);
  }
  v3 ^= last;
  rounds(2);
  v0 ^= last;
  v2 ^= 0xff;
  rounds(4);
  return v0 ^ v1 ^ v2 ^ v3;
}

}  // namespace tracefs
