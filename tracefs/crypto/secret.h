// Secret memory: pages that are locked (not swapped), left out of core dumps
// and overwritten before they are given back. Where the limits of the process
// do not allow locking, the rest still holds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "tracefs/base/bytes.h"

namespace tracefs {

// Overwrites memory in a way that no compiler leaves out.
void Wipe(std::span<std::byte> memory);

// Copies from the front, and leaves nothing of it in vector registers: a
// function that the linker binds when it is first called writes those to the
// stack, where nobody wipes them. `to` may lie before `from` and overlap it.
void CopySecret(ByteSpan from, std::byte* to);

// For containers of what is secret but too small or too much for pages of its
// own: wiped before it is given back, though neither locked nor left out of
// core dumps.
template <typename T>
struct WipingAllocator {
  using value_type = T;
  WipingAllocator() = default;
  template <typename U>
  WipingAllocator(const WipingAllocator<U>&) {}  // NOLINT: as the library asks

  T* allocate(size_t n) { return std::allocator<T>().allocate(n); }
  void deallocate(T* p, size_t n) {
    Wipe(std::as_writable_bytes(std::span(p, n)));
    std::allocator<T>().deallocate(p, n);
  }
  bool operator==(const WipingAllocator&) const = default;
};
// Short ones lie in the object itself and are not wiped: not for less than 16
// bytes.
using SecretString =
    std::basic_string<char, std::char_traits<char>, WipingAllocator<char>>;

class SecretMemory {
 public:
  SecretMemory() = default;
  explicit SecretMemory(size_t bytes);  // zeros
  SecretMemory(SecretMemory&& other) noexcept;
  SecretMemory& operator=(SecretMemory&& other) noexcept;
  ~SecretMemory();

  std::span<std::byte> bytes() { return {data_, size_}; }
  ByteSpan bytes() const { return {data_, size_}; }
  bool empty() const { return size_ == 0; }

 private:
  void Free();

  std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// Every key of Tracefs has 256 bits; those of other sizes are derived.
inline constexpr size_t kKeyBytes = 32;
using KeySpan = std::span<const std::byte, kKeyBytes>;

class SecretKey {
 public:
  SecretKey() : memory_(kKeyBytes) {}
  explicit SecretKey(KeySpan key);

  KeySpan get() const { return KeySpan(memory_.bytes()); }
  std::span<std::byte, kKeyBytes> get() {
    return std::span<std::byte, kKeyBytes>(memory_.bytes());
  }
  SecretKey Clone() const { return SecretKey(get()); }

 private:
  SecretMemory memory_;
};

// Names a key without telling it: the first 8 bytes of a SHA-256 (FORMAT.md,
// section 11.4).
using KeyId = std::array<std::byte, 8>;
KeyId IdOfKey(KeySpan key);
// "0123456789abcdef".
std::string KeyIdText(const KeyId& id);

}  // namespace tracefs
