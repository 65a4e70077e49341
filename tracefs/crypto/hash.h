// Digests, message authentication and key derivation, on OpenSSL's EVP
// interface. A failure of the library (out of memory, an algorithm switched
// off by policy) ends in an exception-free abort for SHA-256 and HMAC, which
// every build of OpenSSL 3 has; MD5 can be missing, see Mac::Create.
#pragma once

#include <openssl/evp.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/crypto/secret.h"

namespace tracefs {

using Digest = std::array<std::byte, 32>;

class Sha256 {
 public:
  Sha256();
  // Starts again.
  void Reset();
  void Update(ByteSpan bytes);
  Digest Finish();

 private:
  std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context_;
};

// HMAC with one digest; reusable with one key after another.
class Mac {
 public:
  static constexpr size_t kMaxBytes = 32;
  // "SHA256" or "MD5". kSystem if the library does not offer it.
  static Result<Mac> Create(const char* digest);

  size_t size() const { return size_; }
  void Start(ByteSpan key);
  void Update(ByteSpan bytes);
  // Writes size() bytes.
  void Finish(std::byte* out);
  // OpenSSL keeps the last key to start again with: takes it away. What was
  // started ends unfinished.
  void ForgetKey();

 private:
  struct FreeMac {
    void operator()(EVP_MAC* p) const { ::EVP_MAC_free(p); }
    void operator()(EVP_MAC_CTX* p) const { ::EVP_MAC_CTX_free(p); }
  };
  Mac() = default;

  std::unique_ptr<EVP_MAC, FreeMac> mac_;
  std::unique_ptr<EVP_MAC_CTX, FreeMac> context_;
  size_t size_ = 0;
};

// Mac::Create("SHA256").
Mac MakeHmacSha256();

// HMAC-SHA256 of a few bytes.
void HmacSha256(ByteSpan key, ByteSpan message, std::span<std::byte, 32> out);

// HKDF-SHA256 (RFC 5869). `out` has at most 255 * 32 bytes.
void Hkdf(ByteSpan key, ByteSpan salt, std::string_view info,
          std::span<std::byte> out);

// True if both have the same bytes; takes the same time where they differ.
bool EqualSecrets(ByteSpan a, ByteSpan b);

// Bytes that nobody can guess.
Status RandomBytes(std::span<std::byte> out);

// What OpenSSL said last, as a status.
Status CryptoError(std::string_view what);

}  // namespace tracefs
