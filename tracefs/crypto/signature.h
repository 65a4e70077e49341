// Ed25519 signatures (RFC 8032).
#pragma once

#include <openssl/evp.h>

#include <array>
#include <memory>

#include "tracefs/base/status.h"
#include "tracefs/crypto/secret.h"

namespace tracefs {

inline constexpr size_t kSignatureBytes = 64;
using Signature = std::array<std::byte, kSignatureBytes>;
using PublicKey = std::array<std::byte, 32>;

class Signer {
 public:
  static Result<Signer> Create(KeySpan private_key);
  const PublicKey& public_key() const { return public_key_; }
  Result<Signature> Sign(ByteSpan message) const;

 private:
  Signer() : key_(nullptr, &::EVP_PKEY_free) {}
  std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key_;
  PublicKey public_key_{};
};

bool VerifySignature(const PublicKey& key, ByteSpan message,
                     ByteSpan signature);

}  // namespace tracefs
