#include "tracefs/crypto/hash.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "tracefs/crypto/openssl_bytes.h"

namespace tracefs {
namespace {

// For calls that only fail when memory is exhausted: going on without the
// result would write a trace that no one can verify.
void Require(bool done) {
  if (done) return;
  std::fprintf(stderr, "tracefs: OpenSSL cannot hash: %s\n",
               CryptoError("").message().c_str());
  std::abort();
}

}  // namespace

Sha256::Sha256() : context_(::EVP_MD_CTX_new(), &::EVP_MD_CTX_free) {
  Require(context_ != nullptr);
  Reset();
}

void Sha256::Reset() {
  Require(::EVP_DigestInit_ex(context_.get(), ::EVP_sha256(), nullptr) == 1);
}

void Sha256::Update(ByteSpan bytes) {
  Require(::EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1);
}

Digest Sha256::Finish() {
  Digest digest;
  Require(::EVP_DigestFinal_ex(context_.get(),
                               reinterpret_cast<unsigned char*>(digest.data()),
                               nullptr) == 1);
  return digest;
}

Result<Mac> Mac::Create(const char* digest) {
  Mac mac;
  mac.mac_.reset(::EVP_MAC_fetch(nullptr, "HMAC", nullptr));
  if (mac.mac_ == nullptr) return CryptoError("HMAC");
  mac.context_.reset(::EVP_MAC_CTX_new(mac.mac_.get()));
  if (mac.context_ == nullptr) return CryptoError("HMAC");
  std::string name = digest;
  const OSSL_PARAM parameters[] = {
      ::OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name.data(), 0),
      ::OSSL_PARAM_construct_end()};
  // The size is known once there was a key, whichever.
  constexpr unsigned char kAnyKey[] = {0};
  if (::EVP_MAC_init(mac.context_.get(), kAnyKey, sizeof kAnyKey, parameters) !=
      1) {
    return CryptoError("HMAC with " + name);
  }
  mac.size_ = ::EVP_MAC_CTX_get_mac_size(mac.context_.get());
  if (mac.size_ == 0 || mac.size_ > kMaxBytes) {
    return CryptoError("HMAC with " + name);
  }
  return mac;
}

void Mac::Start(ByteSpan key) {
  Require(::EVP_MAC_init(context_.get(), OpenSslBytes(key), key.size(),
                         nullptr) == 1);
}

void Mac::Update(ByteSpan bytes) {
  Require(::EVP_MAC_update(context_.get(), OpenSslBytes(bytes), bytes.size()) ==
          1);
}

void Mac::Finish(std::byte* out) {
  size_t size = 0;
  Require(::EVP_MAC_final(context_.get(), reinterpret_cast<unsigned char*>(out),
                          &size, size_) == 1);
}

void Mac::ForgetKey() {
  constexpr std::array<std::byte, 32> kNoKey{};
  Start(kNoKey);
}

Mac MakeHmacSha256() {
  Result<Mac> mac = Mac::Create("SHA256");
  Require(mac.ok());
  return *std::move(mac);
}

void HmacSha256(ByteSpan key, ByteSpan message, std::span<std::byte, 32> out) {
  Mac mac = MakeHmacSha256();
  mac.Start(key);
  mac.Update(message);
  mac.Finish(out.data());
}

void Hkdf(ByteSpan key, ByteSpan salt, std::string_view info,
          std::span<std::byte> out) {
  Mac mac = MakeHmacSha256();
  SecretKey extracted;
  constexpr std::array<std::byte, 32> kNoSalt{};
  mac.Start(salt.empty() ? ByteSpan(kNoSalt) : salt);
  mac.Update(key);
  mac.Finish(extracted.get().data());
  SecretKey block;
  for (size_t done = 0, i = 1; done < out.size(); ++i) {
    mac.Start(extracted.get());
    if (i > 1) mac.Update(block.get());
    mac.Update(AsBytes(info));
    const std::byte counter{static_cast<uint8_t>(i)};
    mac.Update({&counter, 1});
    mac.Finish(block.get().data());
    const size_t n = std::min(kKeyBytes, out.size() - done);
    CopySecret(block.get().first(n), out.data() + done);
    done += n;
  }
}

bool EqualSecrets(ByteSpan a, ByteSpan b) {
  return a.size() == b.size() &&
         ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Status RandomBytes(std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t n = ::getrandom(out.data(), out.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return Status::System(errno, "random numbers of the kernel");
    out = out.subspan(static_cast<size_t>(n));
  }
  return Status::Ok();
}

Status CryptoError(std::string_view what) {
  char text[256] = "no reason given";
  if (const unsigned long error = ::ERR_get_error(); error != 0) {
    ::ERR_error_string_n(error, text, sizeof text);
  }
  ::ERR_clear_error();
  return Status::System(ENOTSUP, std::string(what) + ": OpenSSL: " + text);
}

}  // namespace tracefs
