#include "tracefs/tools/anon/number_set.h"

#include <sys/random.h>

#include <utility>

namespace tracefs::anonymize {
namespace {

constexpr unsigned kFirstBits = 6;

// Times and inodes are rows of numbers at one distance, which one
// multiplication would leave in heaps: MurmurHash3's last steps.
uint64_t Mixed(uint64_t number) {
  number ^= number >> 33;
  number *= 0xFF51AFD7ED558CCD;
  number ^= number >> 33;
  number *= 0xC4CEB9FE1A85EC53;
  return number ^ number >> 33;
}

// Of each set another one: no trace can have numbers that all want one slot,
// and what one set gives in its order lies anywhere in another.
uint64_t NewSeed() {
  uint64_t random = 0;
  static_cast<void>(::getrandom(&random, sizeof random, 0));
  return random;
}

}  // namespace

NumberSet::NumberSet() : seed_(NewSeed()) {}

size_t NumberSet::PlaceOf(uint64_t number) const {
  return static_cast<size_t>(Mixed(number ^ seed_) >> shift_);
}

size_t NumberSet::SlotOf(uint64_t number) const {
  const size_t mask = slots_.size() - 1;
  size_t at = PlaceOf(number);
  while (slots_[at] != 0 && slots_[at] != number) at = (at + 1) & mask;
  return at;
}

void NumberSet::SetAgain(size_t slot) {
  if (IsAgain(slot)) return;
  again_[slot / 64] |= uint64_t{1} << slot % 64;
  ++again_count_;
}

bool NumberSet::Add(uint64_t number) {
  if (number == 0) {
    zeros_ = zeros_ == 0 ? 1 : 2;
    return zeros_ == 1;
  }
  if (slots_.empty()) Grow();
  size_t slot = SlotOf(number);
  if (slots_[slot] == number) {
    SetAgain(slot);
    return false;
  }
  if (size_ >= kMax) {
    full_ = true;
    return true;
  }
  if (2 * size_ >= slots_.size()) {
    Grow();
    slot = SlotOf(number);
  }
  slots_[slot] = number;
  ++size_;
  return true;
}

void NumberSet::Settle() {
  for (size_t i = 0; i < waiting_; ++i) Add(soon_[i]);
  waiting_ = 0;
}

void NumberSet::AddAll(const NumberSet& other) {
  for (size_t slot = 0; slot < other.slots_.size(); ++slot) {
    const uint64_t number = other.slots_[slot];
    if (number == 0) continue;
    AddSoon(number);
    if (other.IsAgain(slot)) AddSoon(number);
  }
  Settle();
  for (uint8_t i = 0; i < other.zeros_; ++i) Add(0);
  full_ = full_ || other.full_;
}

bool NumberSet::Has(uint64_t number) const {
  if (number == 0) return zeros_ != 0;
  return !slots_.empty() && slots_[SlotOf(number)] == number;
}

void NumberSet::Grow() {
  const std::vector<uint64_t> slots = std::exchange(slots_, {});
  const std::vector<uint64_t> again = std::exchange(again_, {});
  shift_ = slots.empty() ? 64 - kFirstBits : shift_ - 1;
  slots_.resize(size_t{1} << (64 - shift_));
  again_.resize(slots_.size() / 64);
  for (size_t old = 0; old < slots.size(); ++old) {
    if (slots[old] == 0) continue;
    const size_t slot = SlotOf(slots[old]);
    slots_[slot] = slots[old];
    again_[slot / 64] |= (again[old / 64] >> old % 64 & 1) << slot % 64;
  }
}

}  // namespace tracefs::anonymize
