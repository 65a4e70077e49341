// FlatIndex: numbers different 64-bit values in the order in which they came.
#pragma once

#include <cstdint>
#include <vector>

#include "tracefs/query/distinct_count.h"

namespace tracefs::query {

// Used by one thread.
class FlatIndex {
 public:
  FlatIndex() : slots_(1024, 0) {}

  uint32_t Number(uint64_t value) {
    if (!values_.empty() && value == values_[last_]) return last_;
    const size_t mask = slots_.size() - 1;
    size_t at = MixedHash(value) & mask;
    while (slots_[at] != 0) {
      if (values_[slots_[at] - 1] == value) return last_ = slots_[at] - 1;
      at = (at + 1) & mask;
    }
    values_.push_back(value);
    last_ = static_cast<uint32_t>(values_.size() - 1);
    slots_[at] = last_ + 1;
    if (2 * values_.size() > slots_.size()) Grow();
    return last_;
  }

  size_t size() const { return values_.size(); }
  uint64_t At(size_t number) const { return values_[number]; }
  void Clear() {
    values_.clear();
    slots_.assign(slots_.size(), 0);
    last_ = 0;
  }

 private:
  void Grow() {
    slots_.assign(2 * slots_.size(), 0);
    const size_t mask = slots_.size() - 1;
    for (size_t i = 0; i < values_.size(); ++i) {
      size_t at = MixedHash(values_[i]) & mask;
      while (slots_[at] != 0) at = (at + 1) & mask;
      slots_[at] = static_cast<uint32_t>(i + 1);
    }
  }

  std::vector<uint64_t> values_;
  std::vector<uint32_t> slots_;  // number + 1; 0 = free; a power of two
  uint32_t last_ = 0;
};

}  // namespace tracefs::query
