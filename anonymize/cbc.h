// AES-256-CBC with a fixed initialisation vector, padded as in PKCS #7: the
// paper's scheme, for comparison only. Values with the same first 16 bytes have
// the same first 16 bytes encrypted, and nothing is authenticated.
#pragma once

#include <openssl/evp.h>

#include <memory>
#include <string>
#include <string_view>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"

namespace tracefs::anonymize {

// Not for two threads at a time.
class Cbc {
 public:
  static constexpr size_t kKeyBytes = 32 + 16;  // key, then vector
  static constexpr size_t kBlockBytes = 16;

  static Result<Cbc> Create(ByteSpan key);
  // Appends the encrypted value: plain.size() / 16 + 1 blocks.
  Status Seal(std::string_view plain, std::string* out);
  // Appends the value. False if `sealed` cannot have been made with this key.
  bool Open(std::string_view sealed, std::string* out);

 private:
  struct Free {
    void operator()(EVP_CIPHER* p) const { ::EVP_CIPHER_free(p); }
    void operator()(EVP_CIPHER_CTX* p) const { ::EVP_CIPHER_CTX_free(p); }
  };
  Cbc() = default;

  unsigned char vector_[16];
  std::unique_ptr<EVP_CIPHER, Free> cipher_;
  std::unique_ptr<EVP_CIPHER_CTX, Free> seal_;
  std::unique_ptr<EVP_CIPHER_CTX, Free> open_;
};

}  // namespace tracefs::anonymize
