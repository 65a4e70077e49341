// AES-SIV (RFC 5297), deterministic authenticated encryption: the same value
// under the same key always gives the same token, nothing else can be learnt
// from it, and a wrong key is noticed.
#pragma once

#include <openssl/evp.h>

#include <memory>
#include <span>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"

namespace tracefs::anonymize {

// Not for two threads at a time.
class Siv {
 public:
  static constexpr size_t kTagBytes = 16;
  // With AES-256; RFC 5297's own examples have AES-128 and 32 bytes.
  static constexpr size_t kKeyBytes = 64;

  // `key` has 32, 48 or 64 bytes. `associated` is authenticated with every
  // value. kSystem if OpenSSL does not offer AES-SIV.
  static Result<Siv> Create(ByteSpan key,
                            std::span<const ByteSpan> associated = {});

  // Writes tag and ciphertext, kTagBytes + plain.size() bytes. `plain` is not
  // empty: OpenSSL before 3.5 cannot encrypt nothing.
  Status Seal(ByteSpan plain, std::byte* out);
  // Writes sealed.size() - kTagBytes bytes. False if `sealed` was not made
  // with this key, or is too short to have been.
  bool Open(ByteSpan sealed, std::byte* out);

 private:
  struct Free {
    void operator()(EVP_CIPHER* p) const { ::EVP_CIPHER_free(p); }
    void operator()(EVP_CIPHER_CTX* p) const { ::EVP_CIPHER_CTX_free(p); }
  };
  using Context = std::unique_ptr<EVP_CIPHER_CTX, Free>;
  Siv() = default;

  std::unique_ptr<EVP_CIPHER, Free> cipher_;
  // A context that has its key and associated data is copied for each value: a
  // third of the cost of a new key. Starting a used one again without a key
  // reports success and does nothing.
  Context seal_template_;
  Context open_template_;
  Context work_;
};

}  // namespace tracefs::anonymize
