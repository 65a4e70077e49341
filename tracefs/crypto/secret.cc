#include "tracefs/crypto/secret.h"

#include <openssl/crypto.h>
#include <sys/mman.h>

#include <cstring>
#include <new>
#include <utility>

#include "tracefs/base/hex.h"
#include "tracefs/crypto/hash.h"

namespace tracefs {

void Wipe(std::span<std::byte> memory) {
  ::OPENSSL_cleanse(memory.data(), memory.size());
}

void CopySecret(ByteSpan from, std::byte* to) {
  // Volatile, so that no compiler makes a memmove of it.
  volatile std::byte* const out = to;
  for (size_t i = 0; i < from.size(); ++i) out[i] = from[i];
}

SecretMemory::SecretMemory(size_t bytes) : size_(bytes) {
  void* p = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) throw std::bad_alloc();
  (void)::mlock(p, size_);
  (void)::madvise(p, size_, MADV_DONTDUMP);
  data_ = static_cast<std::byte*>(p);
}

SecretMemory::SecretMemory(SecretMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

SecretMemory& SecretMemory::operator=(SecretMemory&& other) noexcept {
  if (this != &other) {
    Free();
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

SecretMemory::~SecretMemory() { Free(); }

void SecretMemory::Free() {
  if (data_ == nullptr) return;
  Wipe({data_, size_});
  ::munmap(data_, size_);
}

SecretKey::SecretKey(KeySpan key) : memory_(kKeyBytes) {
  CopySecret(key, memory_.bytes().data());
}

KeyId IdOfKey(KeySpan key) {
  Sha256 hash;
  hash.Update(AsBytes("tracefs-key-id-1"));
  hash.Update(key);
  const Digest digest = hash.Finish();
  KeyId id;
  std::memcpy(id.data(), digest.data(), id.size());
  return id;
}

std::string KeyIdText(const KeyId& id) { return Hex(id); }

}  // namespace tracefs
