// Distinct: values and how often each came, bounded.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tracefs/base/text_dictionary.h"

namespace tracefs::anonymize {

class Distinct {
 public:
  // The number of the value; nothing if it is new and has no room.
  std::optional<uint32_t> Add(std::string_view value) {
    std::optional<uint32_t> number = values_.Find(value);
    if (number) {
      ++counts_[*number];
    } else if (values_.size() < kMaxDistinct &&
               values_.bytes().size() < kMaxBytes) {
      number = values_.Add(value);
      counts_.push_back(1);
    } else {
      full_ = true;
    }
    return number;
  }
  // The value of that number came again.
  void AddAgain(uint32_t number) { ++counts_[number]; }
  bool Has(std::string_view value) const {
    return values_.Find(value).has_value();
  }
  size_t size() const { return counts_.size(); }
  bool full() const { return full_; }
  // How often each came, by number.
  const std::vector<uint64_t>& counts() const { return counts_; }
  size_t Singletons() const {
    return static_cast<size_t>(std::count(counts_.begin(), counts_.end(), 1u));
  }

 private:
  static constexpr size_t kMaxDistinct = 1'000'000;
  static constexpr size_t kMaxBytes = size_t{128} << 20;

  TextDictionary values_;
  std::vector<uint64_t> counts_;
  bool full_ = false;
};

}  // namespace tracefs::anonymize
