#include "tracefs/crypto/cipher.h"

#include <openssl/provider.h>

#include <climits>

#include "tracefs/crypto/hash.h"
#include "tracefs/crypto/openssl_bytes.h"

namespace tracefs {
namespace {

constexpr CipherRow kCiphers[] = {
    {CipherId::kAes256Gcm, "aes-256-gcm", "AES-256-GCM", 32, 12, 16, 0},
    {CipherId::kChaCha20Poly1305, "chacha20-poly1305", "ChaCha20-Poly1305", 32,
     12, 16, 0},
    {CipherId::kAes128Ctr, "aes-128-ctr", "AES-128-CTR", 16, 16, 0, 0},
    {CipherId::kBlowfishCbc, "bf-cbc", "BF-CBC", 16, 8, 0, 8},
};

constexpr bool kLoadsModules = TRACEFS_LOADS_MODULES != 0;

// A library context with nothing but OpenSSL's legacy provider: loading it
// into the default one would change what everything else there finds.
OSSL_LIB_CTX* LegacyLibrary() {
  static OSSL_LIB_CTX* const library = []() -> OSSL_LIB_CTX* {
    if (!kLoadsModules) return nullptr;
    OSSL_LIB_CTX* made = ::OSSL_LIB_CTX_new();
    if (made != nullptr && ::OSSL_PROVIDER_load(made, "legacy") == nullptr) {
      ::OSSL_LIB_CTX_free(made);
      made = nullptr;
    }
    return made;
  }();
  return library;
}

Status NotAuthentic() {
  return Status::Corrupt(
      "does not decrypt: changed, moved here from elsewhere, or encrypted with "
      "another key");
}

}  // namespace

void LoadCiphers() { static_cast<void>(LegacyLibrary()); }

std::span<const CipherRow> Ciphers() { return kCiphers; }

const CipherRow* FindCipher(std::string_view name) {
  for (const CipherRow& row : kCiphers) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

const CipherRow* FindCipher(CipherId id) {
  for (const CipherRow& row : kCiphers) {
    if (row.id == id) return &row;
  }
  return nullptr;
}

Result<Cipher> Cipher::Create(CipherId id) {
  Cipher cipher;
  cipher.row_ = FindCipher(id);
  const bool legacy = id == CipherId::kBlowfishCbc;
  OSSL_LIB_CTX* const library = legacy ? LegacyLibrary() : nullptr;
  if (!legacy || library != nullptr) {
    cipher.cipher_.reset(
        ::EVP_CIPHER_fetch(library, cipher.row_->openssl_name, nullptr));
  }
  if (cipher.cipher_ == nullptr) {
    return CryptoError(
        std::string(cipher.row_->name) +
        (!legacy          ? " is not offered by this OpenSSL"
         : !kLoadsModules ? ": a module of OpenSSL's, which this program, "
                            "linked statically, cannot load; take the "
                            "packages or choose aes-256-gcm"
                          : ": OpenSSL's legacy provider "
                            "(ossl-modules/legacy.so) is needed and cannot be "
                            "loaded; install it or choose aes-256-gcm"));
  }
  cipher.context_.reset(::EVP_CIPHER_CTX_new());
  if (cipher.context_ == nullptr) return CryptoError("cipher");
  return cipher;
}

Result<size_t> Cipher::Seal(ByteSpan key, ByteSpan iv, ByteSpan head,
                            ByteSpan in, std::span<std::byte> out) {
  EVP_CIPHER_CTX* const c = context_.get();
  auto* const to = reinterpret_cast<unsigned char*>(out.data());
  int n = 0;
  int last = 0;
  bool ok = in.size() < INT_MAX &&
            ::EVP_EncryptInit_ex2(c, cipher_.get(), OpenSslBytes(key),
                                  OpenSslBytes(iv), nullptr) == 1;
  if (ok && row_->tag_bytes != 0 && !head.empty()) {
    ok = ::EVP_EncryptUpdate(c, nullptr, &n, OpenSslBytes(head),
                             static_cast<int>(head.size())) == 1;
  }
  n = 0;
  if (ok && !in.empty()) {
    ok = ::EVP_EncryptUpdate(c, to, &n, OpenSslBytes(in),
                             static_cast<int>(in.size())) == 1;
  }
  ok = ok && ::EVP_EncryptFinal_ex(c, to + n, &last) == 1;
  const auto size = static_cast<size_t>(n + last);
  if (ok && row_->tag_bytes != 0) {
    ok = ::EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG,
                               static_cast<int>(row_->tag_bytes),
                               to + size) == 1;
  }
  if (!ok) return CryptoError(row_->name);
  return size + row_->tag_bytes;
}

Result<size_t> Cipher::Open(ByteSpan key, ByteSpan iv, ByteSpan head,
                            ByteSpan in, std::span<std::byte> out) {
  if (in.size() < row_->tag_bytes || in.size() >= INT_MAX) {
    return NotAuthentic();
  }
  const ByteSpan tag = in.last(row_->tag_bytes);
  in = in.first(in.size() - row_->tag_bytes);
  EVP_CIPHER_CTX* const c = context_.get();
  auto* const to = reinterpret_cast<unsigned char*>(out.data());
  int n = 0;
  int last = 0;
  if (::EVP_DecryptInit_ex2(c, cipher_.get(), OpenSslBytes(key),
                            OpenSslBytes(iv), nullptr) != 1) {
    return CryptoError(row_->name);
  }
  bool ok = true;
  if (row_->tag_bytes != 0) {
    ok = ::EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG,
                               static_cast<int>(tag.size()),
                               const_cast<std::byte*>(tag.data())) == 1;
    if (ok && !head.empty()) {
      ok = ::EVP_DecryptUpdate(c, nullptr, &n, OpenSslBytes(head),
                               static_cast<int>(head.size())) == 1;
    }
  }
  n = 0;
  if (ok && !in.empty()) {
    ok = ::EVP_DecryptUpdate(c, to, &n, OpenSslBytes(in),
                             static_cast<int>(in.size())) == 1;
  }
  unsigned char rest[EVP_MAX_BLOCK_LENGTH];
  ok = ok && ::EVP_DecryptFinal_ex(c, rest, &last) == 1;
  if (!ok) {
    (void)CryptoError("");  // empties OpenSSL's queue of errors
    return NotAuthentic();
  }
  for (int i = 0; i < last; ++i) to[n + i] = rest[i];
  return static_cast<size_t>(n + last);
}

}  // namespace tracefs
