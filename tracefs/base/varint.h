// Numbers of as many bytes as they need: seven bits a byte, the lowest first,
// and the highest bit where another follows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tracefs/base/bytes.h"

namespace tracefs {

// `out`: a string, or a vector of bytes.
template <typename Bytes>
void AppendVarint(uint64_t value, Bytes* out) {
  using Byte = typename Bytes::value_type;
  for (; value >= 0x80; value >>= 7) {
    out->push_back(static_cast<Byte>(value | 0x80));
  }
  out->push_back(static_cast<Byte>(value));
}

// Reads them from bytes that may be anything. Never runs past their end; what
// is malformed reads as 0 and sets `bad`.
class VarintCursor {
 public:
  explicit VarintCursor(ByteSpan bytes)
      : at_(bytes.data()), end_(at_ + bytes.size()) {}

  uint64_t Take() {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) break;
      const auto byte = static_cast<uint8_t>(*at_++);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    bad_ = true;
    return 0;
  }
  // A number of bytes, then these.
  ByteSpan TakeBytes() { return TakeBytes(Take()); }
  ByteSpan TakeBytes(uint64_t size) {
    if (bad_ || size > left()) {
      bad_ = true;
      return {};
    }
    const ByteSpan bytes(at_, static_cast<size_t>(size));
    at_ += size;
    return bytes;
  }
  size_t left() const { return static_cast<size_t>(end_ - at_); }
  bool bad() const { return bad_; }
  bool at_end() const { return at_ == end_; }

 private:
  const std::byte* at_;
  const std::byte* end_;
  bool bad_ = false;
};

}  // namespace tracefs
