#include "tracefs/base/text_dictionary.h"

#include <functional>

namespace tracefs {

std::optional<uint32_t> TextDictionary::Find(std::string_view text) const {
  const uint32_t number =
      numbers_.Find(std::hash<std::string_view>()(text),
                    [&](uint32_t known) { return At(known) == text; });
  if (number == HashIndex::kNone) return std::nullopt;
  return number;
}

uint32_t TextDictionary::Add(std::string_view text) {
  const auto fresh = static_cast<uint32_t>(size());
  const uint32_t number =
      numbers_.FindOrAdd(std::hash<std::string_view>()(text), fresh,
                         [&](uint32_t known) { return At(known) == text; });
  if (number == fresh) {
    bytes_ += text;
    offsets_.push_back(static_cast<int32_t>(bytes_.size()));
  }
  return number;
}

}  // namespace tracefs
