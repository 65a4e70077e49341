#include "anonymize/base64url.h"

#include <array>

namespace tracefs::anonymize {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
constexpr uint8_t kNoDigit = 255;

constexpr std::array<uint8_t, 256> kValues = [] {
  std::array<uint8_t, 256> values{};
  values.fill(kNoDigit);
  for (size_t i = 0; i < kDigits.size(); ++i) {
    values[static_cast<uint8_t>(kDigits[i])] = static_cast<uint8_t>(i);
  }
  return values;
}();

}  // namespace

bool IsBase64url(char c) {
  return kValues[static_cast<uint8_t>(c)] != kNoDigit;
}

void AppendBase64url(ByteSpan bytes, std::string* out) {
  const size_t start = out->size();
  out->resize(start + Base64urlSize(bytes.size()));
  char* to = out->data() + start;
  uint32_t bits = 0;
  int count = 0;
  for (const std::byte b : bytes) {
    bits = bits << 8 | std::to_integer<uint32_t>(b);
    count += 8;
    while (count >= 6) {
      count -= 6;
      *to++ = kDigits[bits >> count & 63];
    }
  }
  if (count > 0) *to = kDigits[bits << (6 - count) & 63];
}

bool FromBase64url(std::string_view text, std::vector<std::byte>* bytes) {
  bytes->clear();
  if (text.size() % 4 == 1) return false;
  bytes->reserve(text.size() * 3 / 4);
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const uint8_t value = kValues[static_cast<uint8_t>(c)];
    if (value == kNoDigit) return false;
    bits = bits << 6 | value;
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes->push_back(std::byte(bits >> count & 255));
    }
  }
  // Bits that stand for nothing are zero, so that every token has one spelling.
  return (bits & ((uint32_t{1} << count) - 1)) == 0;
}

}  // namespace tracefs::anonymize
