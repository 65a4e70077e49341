#include "anonymize/cbc.h"

#include "tracefs/crypto/hash.h"
#include "tracefs/crypto/openssl_bytes.h"

namespace tracefs::anonymize {

Result<Cbc> Cbc::Create(ByteSpan key) {
  Cbc cbc;
  std::memcpy(cbc.vector_, key.data() + 32, sizeof cbc.vector_);
  cbc.cipher_.reset(::EVP_CIPHER_fetch(nullptr, "AES-256-CBC", nullptr));
  cbc.seal_.reset(::EVP_CIPHER_CTX_new());
  cbc.open_.reset(::EVP_CIPHER_CTX_new());
  const auto* bytes = reinterpret_cast<const unsigned char*>(key.data());
  if (cbc.cipher_ == nullptr || cbc.seal_ == nullptr || cbc.open_ == nullptr ||
      ::EVP_EncryptInit_ex2(cbc.seal_.get(), cbc.cipher_.get(), bytes,
                            cbc.vector_, nullptr) != 1 ||
      ::EVP_DecryptInit_ex2(cbc.open_.get(), cbc.cipher_.get(), bytes,
                            cbc.vector_, nullptr) != 1) {
    return CryptoError("AES-256-CBC");
  }
  return cbc;
}

Status Cbc::Seal(std::string_view plain, std::string* out) {
  const size_t start = out->size();
  out->resize(start + (plain.size() / kBlockBytes + 1) * kBlockBytes);
  auto* to = reinterpret_cast<unsigned char*>(out->data() + start);
  int size = 0;
  int rest = 0;
  if (::EVP_EncryptInit_ex2(seal_.get(), nullptr, nullptr, vector_, nullptr) !=
          1 ||
      ::EVP_EncryptUpdate(seal_.get(), to, &size, OpenSslBytes(plain),
                          static_cast<int>(plain.size())) != 1 ||
      ::EVP_EncryptFinal_ex(seal_.get(), to + size, &rest) != 1) {
    return CryptoError("AES-256-CBC");
  }
  return Status::Ok();
}

bool Cbc::Open(std::string_view sealed, std::string* out) {
  if (sealed.empty() || sealed.size() % kBlockBytes != 0) return false;
  const size_t start = out->size();
  out->resize(start + sealed.size());
  auto* to = reinterpret_cast<unsigned char*>(out->data() + start);
  int size = 0;
  int rest = 0;
  const bool done =
      ::EVP_DecryptInit_ex2(open_.get(), nullptr, nullptr, vector_, nullptr) ==
          1 &&
      ::EVP_DecryptUpdate(open_.get(), to, &size, OpenSslBytes(sealed),
                          static_cast<int>(sealed.size())) == 1 &&
      ::EVP_DecryptFinal_ex(open_.get(), to + size, &rest) == 1;
  out->resize(done ? start + static_cast<size_t>(size + rest) : start);
  return done;
}

}  // namespace tracefs::anonymize
