// TextDictionary: different texts, numbered in the order in which they came, in
// one piece of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/hash_table.h"

namespace tracefs {

// At most 2 GiB of text: who adds more looks at bytes() before. Used by one
// thread.
class TextDictionary {
 public:
  // The number of a text, which is added if it is new.
  uint32_t Add(std::string_view text);
  // Nothing if it is not there.
  std::optional<uint32_t> Find(std::string_view text) const;

  size_t size() const { return offsets_.size() - 1; }
  std::string_view At(size_t number) const {
    const auto begin = static_cast<size_t>(offsets_[number]);
    return std::string_view(bytes_).substr(
        begin, static_cast<size_t>(offsets_[number + 1]) - begin);
  }
  // All of them, one after the other.
  const std::string& bytes() const { return bytes_; }
  // Bytes of memory, about.
  size_t footprint() const {
    return bytes_.capacity() + offsets_.capacity() * sizeof(int32_t) +
           numbers_.bytes();
  }

 private:
  std::string bytes_;
  std::vector<int32_t> offsets_ = {0};
  HashIndex numbers_;
};

}  // namespace tracefs
