#include "tracefs/base/text_dictionary.h"

#include <algorithm>
#include <functional>

namespace tracefs {
namespace {

uint32_t HashOf(std::string_view text) {
  return static_cast<uint32_t>(std::hash<std::string_view>()(text));
}

}  // namespace

size_t TextDictionary::SlotOf(std::string_view text, uint32_t hash) const {
  const size_t mask = slots_.size() - 1;
  size_t at = hash & mask;
  while (slots_[at] != 0) {
    const uint32_t number = slots_[at] - 1;
    if (hashes_[number] == hash && At(number) == text) break;
    at = (at + 1) & mask;
  }
  return at;
}

std::optional<uint32_t> TextDictionary::Find(std::string_view text) const {
  if (slots_.empty()) return std::nullopt;
  const uint32_t slot = slots_[SlotOf(text, HashOf(text))];
  if (slot == 0) return std::nullopt;
  return slot - 1;
}

uint32_t TextDictionary::Add(std::string_view text) {
  if (2 * hashes_.size() >= slots_.size()) Grow();
  const uint32_t hash = HashOf(text);
  uint32_t& slot = slots_[SlotOf(text, hash)];
  if (slot == 0) {
    hashes_.push_back(hash);
    bytes_ += text;
    offsets_.push_back(static_cast<int32_t>(bytes_.size()));
    slot = static_cast<uint32_t>(hashes_.size());
  }
  return slot - 1;
}

void TextDictionary::Grow() {
  slots_.assign(std::max<size_t>(64, 2 * slots_.size()), 0);
  const size_t mask = slots_.size() - 1;
  for (size_t i = 0; i < hashes_.size(); ++i) {
    size_t at = hashes_[i] & mask;
    while (slots_[at] != 0) at = (at + 1) & mask;
    slots_[at] = static_cast<uint32_t>(i + 1);
  }
}

}  // namespace tracefs
