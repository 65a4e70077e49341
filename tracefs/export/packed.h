// Numbers and texts packed into an entry of a spool, and taken out again in the
// same order, by the same program.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace tracefs {

class Packer {
 public:
  void Number(uint64_t value) {
    while (value >= 0x80) {
      bytes_ += static_cast<char>(value | 0x80);
      value >>= 7;
    }
    bytes_ += static_cast<char>(value);
  }
  void Text(std::string_view text) {
    Number(text.size());
    bytes_ += text;
  }
  const std::string& bytes() const { return bytes_; }
  void Clear() { bytes_.clear(); }

 private:
  std::string bytes_;
};

class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : left_(bytes) {}

  uint64_t Number() {
    uint64_t value = 0;
    for (unsigned shift = 0; !left_.empty() && shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(left_.front());
      left_.remove_prefix(1);
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) break;
    }
    return value;
  }
  std::string_view Text() {
    const uint64_t size = Number();
    const std::string_view text = left_.substr(0, size);
    left_.remove_prefix(text.size());
    return text;
  }

 private:
  std::string_view left_;
};

}  // namespace tracefs
