#include "tracefs/base/hex.h"

namespace tracefs {

std::string Hex(ByteSpan bytes) {
  std::string text;
  AppendHex(bytes, &text);
  return text;
}

void AppendHex(ByteSpan bytes, std::string* text) {
  constexpr char kDigits[] = "0123456789abcdef";
  for (const std::byte b : bytes) {
    *text += kDigits[static_cast<unsigned>(b) >> 4];
    *text += kDigits[static_cast<unsigned>(b) & 15];
  }
}

bool FromHex(std::string_view digits, std::span<std::byte> out) {
  if (digits.size() != 2 * out.size()) return false;
  const auto value = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
  };
  for (size_t i = 0; i < out.size(); ++i) {
    const int high = value(digits[2 * i]);
    const int low = value(digits[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    out[i] = static_cast<std::byte>(high << 4 | low);
  }
  return true;
}

}  // namespace tracefs
