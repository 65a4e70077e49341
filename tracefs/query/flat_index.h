// FlatIndex: numbers different 64-bit values in the order in which they came.
#pragma once

#include <cstdint>
#include <vector>

#include "tracefs/base/hash_table.h"
#include "tracefs/query/distinct_count.h"

namespace tracefs::query {

// Used by one thread.
class FlatIndex {
 public:
  uint32_t Number(uint64_t value) {
    if (!values_.empty() && value == values_[last_]) return last_;
    const auto fresh = static_cast<uint32_t>(values_.size());
    last_ = numbers_.FindOrAdd(MixedHash(value), fresh, [&](uint32_t number) {
      return values_[number] == value;
    });
    if (last_ == fresh) values_.push_back(value);
    return last_;
  }

  size_t size() const { return values_.size(); }
  uint64_t At(size_t number) const { return values_[number]; }
  void Clear() {
    values_.clear();
    numbers_.Clear();
    last_ = 0;
  }

 private:
  std::vector<uint64_t> values_;
  HashIndex numbers_;
  uint32_t last_ = 0;
};

}  // namespace tracefs::query
