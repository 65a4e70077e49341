#include "tracefs/crypto/signature.h"

#include "tracefs/crypto/hash.h"
#include "tracefs/crypto/openssl_bytes.h"

namespace tracefs {
namespace {

using DigestContext = std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)>;

template <size_t kSize>
unsigned char* Out(std::array<std::byte, kSize>& bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}
}  // namespace

Result<Signer> Signer::Create(KeySpan private_key) {
  Signer signer;
  signer.key_.reset(::EVP_PKEY_new_raw_private_key(
      EVP_PKEY_ED25519, nullptr, OpenSslBytes(ByteSpan(private_key)),
      kKeyBytes));
  size_t size = signer.public_key_.size();
  if (signer.key_ == nullptr ||
      ::EVP_PKEY_get_raw_public_key(signer.key_.get(), Out(signer.public_key_),
                                    &size) != 1) {
    return CryptoError("Ed25519");
  }
  return signer;
}

Result<Signature> Signer::Sign(ByteSpan message) const {
  const DigestContext context(::EVP_MD_CTX_new(), &::EVP_MD_CTX_free);
  Signature signature;
  size_t size = signature.size();
  if (context == nullptr ||
      ::EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr,
                           key_.get()) != 1 ||
      ::EVP_DigestSign(context.get(), Out(signature), &size,
                       OpenSslBytes(message), message.size()) != 1 ||
      size != kSignatureBytes) {
    return CryptoError("Ed25519");
  }
  return signature;
}

bool VerifySignature(const PublicKey& key, ByteSpan message,
                     ByteSpan signature) {
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> imported(
      ::EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr,
                                    OpenSslBytes(ByteSpan(key)), key.size()),
      &::EVP_PKEY_free);
  const DigestContext context(::EVP_MD_CTX_new(), &::EVP_MD_CTX_free);
  const bool good = imported != nullptr && context != nullptr &&
                    ::EVP_DigestVerifyInit(context.get(), nullptr, nullptr,
                                           nullptr, imported.get()) == 1 &&
                    ::EVP_DigestVerify(context.get(), OpenSslBytes(signature),
                                       signature.size(), OpenSslBytes(message),
                                       message.size()) == 1;
  if (!good) (void)CryptoError("");
  return good;
}

}  // namespace tracefs
