#include "anonymize/ff1.h"

#include <algorithm>

#include "tracefs/crypto/hash.h"
#include "tracefs/crypto/openssl_bytes.h"

namespace tracefs::anonymize {

Result<Ff1> Ff1::Create(ByteSpan key, int bits) {
  Ff1 ff1;
  ff1.half_bits_ = bits / 2;
  ff1.cipher_.reset(::EVP_CIPHER_fetch(nullptr, "AES-256-ECB", nullptr));
  ff1.aes_.reset(::EVP_CIPHER_CTX_new());
  if (ff1.cipher_ == nullptr || ff1.aes_ == nullptr ||
      ::EVP_EncryptInit_ex2(ff1.aes_.get(), ff1.cipher_.get(),
                            reinterpret_cast<const unsigned char*>(key.data()),
                            nullptr, nullptr) != 1 ||
      ::EVP_CIPHER_CTX_set_padding(ff1.aes_.get(), 0) != 1) {
    return CryptoError("AES-256");
  }
  // Step 5: P = 1, 2, 1, radix (3 bytes), 10, u, n (4 bytes), t (4 bytes).
  ff1.first_ = {std::byte{1},       std::byte{2},        std::byte{1},
                std::byte{0},       std::byte{0},        std::byte{2},
                std::byte{kRounds}, std::byte(bits / 2), std::byte{0},
                std::byte{0},       std::byte{0},        std::byte(bits)};
  int size = 0;
  if (::EVP_EncryptUpdate(ff1.aes_.get(), OpenSslBytes(ff1.first_.data()),
                          &size, OpenSslBytes(ff1.first_.data()),
                          kBlockBytes) != 1) {
    return CryptoError("AES-256");
  }
  ff1.blocks_.resize(kBatch * kBlockBytes);
  return ff1;
}

Status Ff1::RoundFunction(int round, std::span<const uint32_t> halves,
                          std::span<uint32_t> out) {
  // Step 6: Q = zeros, the round, NUM(B) big-endian in b bytes; one block.
  // R = AES(AES(P) ^ Q).
  const bool wide = half_bits_ == 32;
  std::byte* block = blocks_.data();
  for (const uint32_t half : halves) {
    std::memcpy(block, first_.data(), kBlockBytes);
    block[wide ? 11 : 13] ^= std::byte(round);
    if (wide) {
      block[12] ^= std::byte(half >> 24);
      block[13] ^= std::byte(half >> 16 & 0xff);
    }
    block[14] ^= std::byte(half >> 8 & 0xff);
    block[15] ^= std::byte(half & 0xff);
    block += kBlockBytes;
  }
  const int bytes = static_cast<int>(halves.size() * kBlockBytes);
  int size = 0;
  if (::EVP_EncryptUpdate(aes_.get(), OpenSslBytes(blocks_.data()), &size,
                          OpenSslBytes(blocks_.data()), bytes) != 1 ||
      size != bytes) {
    return CryptoError("AES-256");
  }
  // y = NUM of the first 8 bytes (d = 8 for both widths), modulo 2^half_bits.
  block = blocks_.data();
  for (uint32_t& y : out) {
    const auto at = [block](int i) {
      return std::to_integer<uint32_t>(block[i]);
    };
    y = at(6) << 8 | at(7);
    if (wide) y |= at(4) << 24 | at(5) << 16;
    block += kBlockBytes;
  }
  return Status::Ok();
}

Status Ff1::Run(std::span<uint64_t> values, bool decrypt) {
  const uint32_t mask =
      half_bits_ == 32 ? 0xffffffff : (uint32_t{1} << half_bits_) - 1;
  std::array<uint32_t, kBatch> a;
  std::array<uint32_t, kBatch> b;
  std::array<uint32_t, kBatch> y;
  while (!values.empty()) {
    const size_t n = std::min(values.size(), kBatch);
    for (size_t i = 0; i < n; ++i) {
      a[i] = static_cast<uint32_t>(values[i] >> half_bits_) & mask;
      b[i] = static_cast<uint32_t>(values[i]) & mask;
    }
    for (int step = 0; step < kRounds; ++step) {
      const int round = decrypt ? kRounds - 1 - step : step;
      // Encrypting, C = A + F(B), A = B, B = C; decrypting, the reverse.
      auto& in = decrypt ? a : b;
      auto& other = decrypt ? b : a;
      if (Status s = RoundFunction(round, std::span(in).first(n),
                                   std::span(y).first(n));
          !s.ok()) {
        return s;
      }
      for (size_t i = 0; i < n; ++i) {
        const uint32_t c = (decrypt ? other[i] - y[i] : other[i] + y[i]) & mask;
        other[i] = in[i];
        in[i] = c;
      }
    }
    for (size_t i = 0; i < n; ++i) {
      values[i] = uint64_t{a[i]} << half_bits_ | b[i];
    }
    values = values.subspan(n);
  }
  return Status::Ok();
}

Status Ff1::Encrypt(std::span<uint64_t> values) { return Run(values, false); }
Status Ff1::Decrypt(std::span<uint64_t> values) { return Run(values, true); }

}  // namespace tracefs::anonymize
