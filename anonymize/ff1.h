// FF1 (NIST SP 800-38G) over all 32-bit or all 64-bit integers: radix 2, 32 or
// 64 digits, AES-256, no tweak. A keyed permutation: integers stay integers of
// the same width and no two become one.
//
// Many values are encrypted together, so that AES works on whole arrays: one
// value costs ten AES blocks, which one by one would cost more in calls than in
// cryptography. FF3 and FF3-1 were withdrawn; domains below a million values
// are not offered at all.
#pragma once

#include <openssl/evp.h>

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"

namespace tracefs::anonymize {

// Not for two threads at a time.
class Ff1 {
 public:
  static constexpr size_t kKeyBytes = 32;

  // `bits` is 32 or 64.
  static Result<Ff1> Create(ByteSpan key, int bits);

  // Replaces each value, which must fit into the bits.
  Status Encrypt(std::span<uint64_t> values);
  Status Decrypt(std::span<uint64_t> values);

 private:
  static constexpr int kRounds = 10;
  static constexpr size_t kBlockBytes = 16;
  // Values at a time: their blocks fit into the first-level cache.
  static constexpr size_t kBatch = 512;

  struct Free {
    void operator()(EVP_CIPHER* p) const { ::EVP_CIPHER_free(p); }
    void operator()(EVP_CIPHER_CTX* p) const { ::EVP_CIPHER_CTX_free(p); }
  };
  Ff1() = default;
  // The low half-width bits of F(round, half) for each of `halves`.
  Status RoundFunction(int round, std::span<const uint32_t> halves,
                       std::span<uint32_t> out);
  Status Run(std::span<uint64_t> values, bool decrypt);

  int half_bits_ = 0;
  std::unique_ptr<EVP_CIPHER, Free> cipher_;
  std::unique_ptr<EVP_CIPHER_CTX, Free> aes_;
  std::array<std::byte, kBlockBytes> first_{};  // AES of the constant block P
  std::vector<std::byte> blocks_;
};

}  // namespace tracefs::anonymize
