// Distinct: values and how often each came, bounded.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tracefs/base/text_dictionary.h"

namespace tracefs::anonymize {

class Distinct {
 public:
  void Add(std::string_view value) {
    if (const auto number = values_.Find(value)) {
      ++counts_[*number];
    } else if (values_.size() < kMaxDistinct &&
               values_.bytes().size() < kMaxBytes) {
      values_.Add(value);
      counts_.push_back(1);
    } else {
      full_ = true;
    }
  }
  bool Has(std::string_view value) const {
    return values_.Find(value).has_value();
  }
  size_t size() const { return counts_.size(); }
  bool full() const { return full_; }
  size_t Singletons() const {
    return static_cast<size_t>(std::count(counts_.begin(), counts_.end(), 1u));
  }
  // The values, by number.
  std::string_view At(size_t number) const { return values_.At(number); }

 private:
  static constexpr size_t kMaxDistinct = 1'000'000;
  static constexpr size_t kMaxBytes = size_t{128} << 20;

  TextDictionary values_;
  std::vector<uint64_t> counts_;
  bool full_ = false;
};

}  // namespace tracefs::anonymize
