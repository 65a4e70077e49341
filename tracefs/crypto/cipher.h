// The ciphers of the encryption filter, on OpenSSL's EVP interface. Every
// message has a key of its own, so the initialisation vector is derived with
// the key and never repeats.
#pragma once

#include <openssl/evp.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"

namespace tracefs {

// Numbers are those of the trace format (FORMAT.md, section 11.3).
enum class CipherId : uint8_t {
  kAes256Gcm = 1,
  kChaCha20Poly1305 = 2,
  kAes128Ctr = 3,
  kBlowfishCbc = 4,  // with a key of 128 bits, as in the paper
};

// Loads what OpenSSL keeps in files of its own, before a sandbox hides them.
void LoadCiphers();

struct CipherRow {
  CipherId id;
  std::string_view name;  // in a config
  const char* openssl_name;
  size_t key_bytes;
  size_t iv_bytes;
  size_t tag_bytes;  // 0: it authenticates nothing
  size_t pad_bytes;  // at most this much longer
};
std::span<const CipherRow> Ciphers();
// Null if there is none.
const CipherRow* FindCipher(std::string_view name);
const CipherRow* FindCipher(CipherId id);

// Not for two threads at a time.
class Cipher {
 public:
  static constexpr size_t kMaxKeyBytes = 32;
  static constexpr size_t kMaxIvBytes = 16;

  // kSystem if the library does not offer it; the message says what is missing.
  static Result<Cipher> Create(CipherId id);

  const CipherRow& row() const { return *row_; }

  // Encrypts; `out` has in.size() + pad_bytes + tag_bytes bytes. The length of
  // what was written, the tag at its end. `head` is authenticated, too.
  Result<size_t> Seal(ByteSpan key, ByteSpan iv, ByteSpan head, ByteSpan in,
                      std::span<std::byte> out);
  // Decrypts; `out` has in.size() bytes. kCorrupt if it is not authentic or was
  // encrypted with another key; then `out` has nothing of use.
  Result<size_t> Open(ByteSpan key, ByteSpan iv, ByteSpan head, ByteSpan in,
                      std::span<std::byte> out);

 private:
  struct Free {
    void operator()(EVP_CIPHER* p) const { ::EVP_CIPHER_free(p); }
    void operator()(EVP_CIPHER_CTX* p) const { ::EVP_CIPHER_CTX_free(p); }
  };
  Cipher() = default;

  const CipherRow* row_ = nullptr;
  std::unique_ptr<EVP_CIPHER, Free> cipher_;
  std::unique_ptr<EVP_CIPHER_CTX, Free> context_;
};

}  // namespace tracefs
