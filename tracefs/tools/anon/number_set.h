// NumberSet: different numbers, and which of them came once; bounded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

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
    if (!slots_.empty()) __builtin_prefetch(&slots_[PlaceOf(number)]);
    soon_[waiting_++] = number;
  }
  void Settle();
  // `other` is settled.
  void AddAll(const NumberSet& other);
  bool Has(uint64_t number) const;

  size_t size() const { return size_ + (zeros_ != 0); }
  bool full() const { return full_; }
  // How many of them came once.
  size_t Singletons() const { return size() - again_count_ - (zeros_ > 1); }

  // But zero.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const uint64_t number : slots_) {
      if (number != 0) visit(number);
    }
  }
  // How many that is.
  size_t not_zero() const { return size_; }

 private:
  size_t PlaceOf(uint64_t number) const;  // where to look first
  size_t SlotOf(uint64_t number) const;
  bool IsAgain(size_t slot) const { return again_[slot / 64] >> slot % 64 & 1; }
  void SetAgain(size_t slot);
  void Grow();

  uint64_t seed_;
  std::vector<uint64_t> slots_;  // 0 = free; a power of two
  std::vector<uint64_t> again_;  // a bit for each slot: it came again
  unsigned shift_ = 64;          // of hashes to slots
  size_t size_ = 0;              // but zero
  size_t again_count_ = 0;       // likewise
  uint8_t zeros_ = 0;            // 2: more than one
  bool full_ = false;
  std::array<uint64_t, 32> soon_;
  size_t waiting_ = 0;  // in soon_
};

}  // namespace tracefs::anonymize
