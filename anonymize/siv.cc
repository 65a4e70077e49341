#include "anonymize/siv.h"

#include "tracefs/crypto/hash.h"
#include "tracefs/crypto/openssl_bytes.h"

namespace tracefs::anonymize {

Result<Siv> Siv::Create(ByteSpan key, std::span<const ByteSpan> associated) {
  const char* name = key.size() == 64   ? "AES-256-SIV"
                     : key.size() == 48 ? "AES-192-SIV"
                                        : "AES-128-SIV";
  Siv siv;
  siv.cipher_.reset(::EVP_CIPHER_fetch(nullptr, name, nullptr));
  siv.seal_template_.reset(::EVP_CIPHER_CTX_new());
  siv.open_template_.reset(::EVP_CIPHER_CTX_new());
  siv.work_.reset(::EVP_CIPHER_CTX_new());
  if (siv.cipher_ == nullptr || siv.seal_template_ == nullptr ||
      siv.open_template_ == nullptr || siv.work_ == nullptr) {
    return CryptoError(name);
  }
  if (::EVP_EncryptInit_ex2(siv.seal_template_.get(), siv.cipher_.get(),
                            OpenSslBytes(key), nullptr, nullptr) != 1 ||
      ::EVP_DecryptInit_ex2(siv.open_template_.get(), siv.cipher_.get(),
                            OpenSslBytes(key), nullptr, nullptr) != 1) {
    return CryptoError(name);
  }
  for (const ByteSpan data : associated) {
    int ignored = 0;
    const int size = static_cast<int>(data.size());
    if (::EVP_EncryptUpdate(siv.seal_template_.get(), nullptr, &ignored,
                            OpenSslBytes(data), size) != 1 ||
        ::EVP_DecryptUpdate(siv.open_template_.get(), nullptr, &ignored,
                            OpenSslBytes(data), size) != 1) {
      return CryptoError(name);
    }
  }
  return siv;
}

Status Siv::Seal(ByteSpan plain, std::byte* out) {
  int size = 0;
  int rest = 0;
  if (plain.empty() ||
      ::EVP_CIPHER_CTX_copy(work_.get(), seal_template_.get()) != 1 ||
      ::EVP_EncryptUpdate(work_.get(), OpenSslBytes(out + kTagBytes), &size,
                          OpenSslBytes(plain),
                          static_cast<int>(plain.size())) != 1 ||
      static_cast<size_t>(size) != plain.size() ||
      ::EVP_EncryptFinal_ex(work_.get(), OpenSslBytes(out + kTagBytes) + size,
                            &rest) != 1 ||
      ::EVP_CIPHER_CTX_ctrl(work_.get(), EVP_CTRL_AEAD_GET_TAG, kTagBytes,
                            out) != 1) {
    return CryptoError("AES-SIV");
  }
  return Status::Ok();
}

bool Siv::Open(ByteSpan sealed, std::byte* out) {
  if (sealed.size() <= kTagBytes) return false;
  const ByteSpan body = sealed.subspan(kTagBytes);
  std::byte tag[kTagBytes];
  std::memcpy(tag, sealed.data(), kTagBytes);
  int size = 0;
  return ::EVP_CIPHER_CTX_copy(work_.get(), open_template_.get()) == 1 &&
         ::EVP_CIPHER_CTX_ctrl(work_.get(), EVP_CTRL_AEAD_SET_TAG, kTagBytes,
                               tag) == 1 &&
         ::EVP_DecryptUpdate(work_.get(), OpenSslBytes(out), &size,
                             OpenSslBytes(body),
                             static_cast<int>(body.size())) == 1 &&
         static_cast<size_t>(size) == body.size();
}

}  // namespace tracefs::anonymize
