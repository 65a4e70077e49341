#include "tracefs/tools/anon/leak_scan.h"

#include <algorithm>

#include "anonymize/base64url.h"
#include "tracefs/base/hex.h"
#include "tracefs/crypto/hash.h"

namespace tracefs::anonymize {
namespace {

constexpr size_t kBits = size_t{1} << 22;
constexpr size_t kStart = 4;
// Shorter ones would occur in tokens, which are base64, by chance.
constexpr size_t kMinBase64Chars = 9;
constexpr size_t kMinHexBytes = 6;

bool IsWordByte(std::byte b) {
  const auto c = std::to_integer<char>(b);
  return IsBase64url(c);  // letters, digits, '-', '_'
}

size_t BitOf(uint32_t start) {
  return static_cast<size_t>(start * uint32_t{0x9E3779B9} >> 10);
}

std::string Upper(std::string text) {
  for (char& c : text) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return text;
}

}  // namespace

void LeakScan::AddText(std::string_view value, std::string_view what) {
  Add(value, what, true);
}
void LeakScan::AddData(std::string_view value, std::string_view what) {
  Add(value, what, false);
}

void LeakScan::Add(std::string_view value, std::string_view what, bool word) {
  if (value.size() < kMinBytes) return;
  if (values_.size() >= kMaxValues) {
    full_ = true;
    return;
  }
  if (!seen_.emplace(value).second) return;
  const auto index = static_cast<uint32_t>(values_.size());
  values_.push_back({std::string(value), what});
  AddPattern(std::string(value), index, "as it is", word);
  std::string wide;
  for (const char c : value) {
    wide += c;
    wide += '\0';
  }
  AddPattern(std::move(wide), index, "as UTF-16", false);
  if (value.size() >= kMinHexBytes) {
    std::string hex = Hex(AsBytes(value));
    AddPattern(Upper(hex), index, "in hex", false);
    AddPattern(std::move(hex), index, "in hex", false);
  }
  // What base64 makes of a value depends on how far into a group of three
  // bytes it starts; characters that depend on neighbours are left out.
  for (size_t shift = 0; shift < 3; ++shift) {
    const std::string shifted = std::string(shift, '\0') + std::string(value);
    std::string text;
    AppendBase64url(AsBytes(shifted), &text);
    const size_t first = (shift * 8 + 5) / 6;
    const size_t end = shifted.size() * 8 / 6;
    if (end < first + kMinBase64Chars) continue;
    text = text.substr(first, end - first);
    std::string standard = text;
    std::replace(standard.begin(), standard.end(), '-', '+');
    std::replace(standard.begin(), standard.end(), '_', '/');
    if (standard != text) {
      AddPattern(std::move(standard), index, "in base64", false);
    }
    AddPattern(std::move(text), index, "in base64", false);
  }
}

void LeakScan::AddPattern(std::string bytes, uint32_t value,
                          std::string_view form, bool word) {
  if (bits_.empty()) bits_.resize(kBits / 64);
  const auto start = LoadLe<uint32_t>(bytes.data());
  bits_[BitOf(start) / 64] |= uint64_t{1} << BitOf(start) % 64;
  by_start_.emplace(start, static_cast<uint32_t>(patterns_.size()));
  patterns_.push_back({std::move(bytes), value, form, word});
}

void LeakScan::Find(ByteSpan bytes, size_t min_bytes, std::vector<Hit>* hits) {
  if (bits_.empty() || bytes.size() < kStart) return;
  const std::byte* const begin = bytes.data();
  for (size_t at = 0; at + kStart <= bytes.size(); ++at) {
    const auto start = LoadLe<uint32_t>(begin + at);
    const size_t bit = BitOf(start);
    if ((bits_[bit / 64] >> bit % 64 & 1) == 0) continue;
    const auto [first, last] = by_start_.equal_range(start);
    for (auto i = first; i != last; ++i) {
      const Pattern& pattern = patterns_[i->second];
      const size_t size = pattern.bytes.size();
      if (values_[pattern.value].found || size < min_bytes ||
          size > bytes.size() - at ||
          std::memcmp(begin + at, pattern.bytes.data(), size) != 0) {
        continue;
      }
      if (pattern.word &&
          ((at > 0 && IsWordByte(begin[at - 1])) ||
           (at + size < bytes.size() && IsWordByte(begin[at + size])))) {
        continue;
      }
      Value& value = values_[pattern.value];
      value.found = true;
      hits->push_back({value.text, value.what, pattern.form, at});
    }
  }
}

}  // namespace tracefs::anonymize
