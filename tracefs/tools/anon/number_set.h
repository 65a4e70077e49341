// NumberSet: different numbers, and which of them came once; bounded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tracefs/base/hash_table.h"

namespace tracefs::anonymize {

// Used by one thread. Memory: at most 16 MiB, and half of it again as it grows.
class NumberSet {
 public:
  static constexpr size_t kMax = 1'000'000;

  NumberSet();

  // True if it is new. What is new and has no room is passed over: full().
  bool Add(uint64_t number);
  // The same a little later, when its place has come into the cache: most of
  // the time of large sets is waiting for memory. Settle() before anything is
  // asked.
  void AddSoon(uint64_t number) {
    if (waiting_ == soon_.size()) Settle();
    __builtin_prefetch(&numbers_.FirstFor(HashOf(number)));
    soon_[waiting_++] = number;
  }
  void Settle();
  // `other` is settled.
  void AddAll(const NumberSet& other);
  bool Has(uint64_t number) const;

  size_t size() const { return numbers_.size() + (zeros_ != 0); }
  bool full() const { return full_; }
  // How many of them came once.
  size_t Singletons() const { return size() - again_count_ - (zeros_ > 1); }

  // But zero.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const uint64_t number : numbers_.slots()) {
      if (number != 0) visit(number);
    }
  }
  // How many that is.
  size_t not_zero() const { return numbers_.size(); }

 private:
  uint64_t HashOf(uint64_t number) const;
  // Its place, or the free one where it goes.
  size_t Find(uint64_t number) const;
  bool IsAgain(size_t place) const {
    return again_[place / 64] >> place % 64 & 1;
  }
  void SetAgain(size_t place) {
    again_[place / 64] |= uint64_t{1} << place % 64;
  }
  void PutIn(size_t place, uint64_t number);

  uint64_t seed_;
  HashTable<uint64_t> numbers_;        // but zero
  std::vector<uint64_t> again_ = {0};  // a bit for each place: it came again
  size_t again_count_ = 0;             // but zero
  uint8_t zeros_ = 0;                  // 2: more than one
  bool full_ = false;
  std::array<uint64_t, 32> soon_;
  size_t waiting_ = 0;  // in soon_
};

}  // namespace tracefs::anonymize
