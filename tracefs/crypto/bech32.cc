#include "tracefs/crypto/bech32.h"

#include <cstdint>

namespace tracefs {
namespace {

constexpr std::string_view kDigits = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
constexpr size_t kCheckDigits = 6;

// The checksum of BIP 173 over five-bit values.
class Polymod {
 public:
  void Add(uint32_t value) {
    constexpr uint32_t kGenerator[] = {0x3b6a57b2, 0x26508e6d, 0x1ea119fa,
                                       0x3d4233dd, 0x2a1462b3};
    const uint32_t top = sum_ >> 25;
    sum_ = (sum_ & 0x1ffffff) << 5 ^ value;
    for (unsigned i = 0; i < 5; ++i) {
      if ((top >> i & 1) != 0) sum_ ^= kGenerator[i];
    }
  }
  void AddPrefix(std::string_view prefix) {
    for (const char c : prefix) Add(static_cast<uint8_t>(c) >> 5);
    Add(0);
    for (const char c : prefix) Add(static_cast<uint8_t>(c) & 31);
  }
  uint32_t sum() const { return sum_; }

 private:
  uint32_t sum_ = 1;
};

char Lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

}  // namespace

std::string Bech32Encode(std::string_view prefix, ByteSpan data) {
  std::string text(prefix);
  text += '1';
  Polymod check;
  check.AddPrefix(prefix);
  const auto put = [&](uint32_t value) {
    check.Add(value);
    text += kDigits[value];
  };
  uint32_t bits = 0;
  unsigned count = 0;
  for (const std::byte b : data) {
    bits = bits << 8 | static_cast<uint32_t>(b);
    for (count += 8; count >= 5; count -= 5) {
      put(bits >> (count - 5) & 31);
    }
  }
  if (count != 0) put(bits << (5 - count) & 31);
  for (size_t i = 0; i < kCheckDigits; ++i) check.Add(0);
  const uint32_t sum = check.sum() ^ 1;
  for (size_t i = 0; i < kCheckDigits; ++i) {
    text += kDigits[sum >> (5 * (kCheckDigits - 1 - i)) & 31];
  }
  return text;
}

bool Bech32Decode(std::string_view text, std::string_view prefix,
                  std::span<std::byte> data) {
  const size_t digits = (8 * data.size() + 4) / 5;
  if (text.size() != prefix.size() + 1 + digits + kCheckDigits) return false;
  bool any_lower = false;
  bool any_upper = false;
  for (const char c : text) {
    any_lower |= c >= 'a' && c <= 'z';
    any_upper |= c >= 'A' && c <= 'Z';
  }
  if (any_lower && any_upper) return false;
  Polymod check;
  check.AddPrefix(prefix);
  uint32_t bits = 0;
  unsigned count = 0;
  size_t done = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = Lower(text[i]);
    if (i < prefix.size()) {
      if (c != prefix[i]) return false;
      continue;
    }
    if (i == prefix.size()) {
      if (c != '1') return false;
      continue;
    }
    const size_t value = kDigits.find(c);
    if (value == kDigits.npos) return false;
    check.Add(static_cast<uint32_t>(value));
    if (i > prefix.size() + digits) continue;  // of the checksum itself
    bits = bits << 5 | static_cast<uint32_t>(value);
    count += 5;
    if (count >= 8) {
      count -= 8;
      data[done++] = static_cast<std::byte>(bits >> count);
    }
  }
  // What is left over must be padding of zeros.
  return check.sum() == 1 && (bits & ((1u << count) - 1)) == 0;
}

}  // namespace tracefs
