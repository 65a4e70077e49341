// Little-endian loads and stores, and a reader that never runs past its end.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace tracefs {

using ByteSpan = std::span<const std::byte>;

static_assert(std::endian::native == std::endian::little,
              "the format is little-endian; add byte swaps for this machine");

template <typename T>
inline T LoadLe(const void* p) {
  T value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

template <typename T>
inline void StoreLe(void* p, T value) {
  std::memcpy(p, &value, sizeof value);
}

inline ByteSpan AsBytes(std::string_view s) {
  return {reinterpret_cast<const std::byte*>(s.data()), s.size()};
}

inline std::string_view AsText(ByteSpan b) {
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}

// Reads values off the front of a span that may hold anything. Every Take
// returns nothing, and takes nothing, if fewer bytes are left than asked for.
class ByteCursor {
 public:
  explicit ByteCursor(ByteSpan bytes) : bytes_(bytes) {}

  // Bytes consumed so far, left, and all that is left.
  size_t offset() const { return offset_; }
  size_t left() const { return bytes_.size() - offset_; }
  ByteSpan rest() const { return bytes_.subspan(offset_); }

  template <typename T>
  std::optional<T> TakeLe() {
    if (left() < sizeof(T)) return std::nullopt;
    const T value = LoadLe<T>(bytes_.data() + offset_);
    offset_ += sizeof(T);
    return value;
  }

  std::optional<ByteSpan> Take(size_t n) {
    if (left() < n) return std::nullopt;
    const ByteSpan taken = bytes_.subspan(offset_, n);
    offset_ += n;
    return taken;
  }

 private:
  ByteSpan bytes_;
  size_t offset_ = 0;
};

}  // namespace tracefs
