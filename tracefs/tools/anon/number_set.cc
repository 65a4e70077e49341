#include "tracefs/tools/anon/number_set.h"

#include <sys/random.h>

namespace tracefs::anonymize {
namespace {

// Times and inodes are rows of numbers at one distance, which one
// multiplication would leave in heaps: MurmurHash3's last steps.
uint64_t Mixed(uint64_t number) {
  number ^= number >> 33;
  number *= 0xFF51AFD7ED558CCD;
  number ^= number >> 33;
  number *= 0xC4CEB9FE1A85EC53;
  return number ^ number >> 33;
}

// Each set has its own: no trace can have numbers that all want one slot,
// and what one set gives in its order lies anywhere in another.
uint64_t NewSeed() {
  uint64_t random = 0;
  static_cast<void>(::getrandom(&random, sizeof random, 0));
  return random;
}

}  // namespace

NumberSet::NumberSet() : seed_(NewSeed()) {}

uint64_t NumberSet::HashOf(uint64_t number) const {
  return Mixed(number ^ seed_);
}

size_t NumberSet::Find(uint64_t number) const {
  return numbers_.Find(HashOf(number),
                       [number](uint64_t known) { return known == number; });
}

bool NumberSet::Add(uint64_t number) {
  if (number == 0) {
    zeros_ = zeros_ == 0 ? 1 : 2;
    return zeros_ == 1;
  }
  const size_t place = Find(number);
  if (!numbers_.IsFree(place)) {
    if (!IsAgain(place)) ++again_count_;
    SetAgain(place);
    return false;
  }
  if (numbers_.size() >= kMax) {
    full_ = true;
    return true;
  }
  PutIn(place, number);
  return true;
}

void NumberSet::PutIn(size_t place, uint64_t number) {
  const auto hash_of = [this](uint64_t known) { return HashOf(known); };
  if (!numbers_.IsFull()) return numbers_.PutIn(place, number, hash_of);
  // All get other places.
  std::vector<uint64_t> again;
  for (size_t i = 0; i < numbers_.slots().size(); ++i) {
    if (IsAgain(i)) again.push_back(numbers_.At(i));
  }
  numbers_.PutIn(place, number, hash_of);
  again_.assign((numbers_.slots().size() + 63) / 64, 0);
  for (const uint64_t known : again) SetAgain(Find(known));
}

void NumberSet::Settle() {
  for (size_t i = 0; i < waiting_; ++i) Add(soon_[i]);
  waiting_ = 0;
}

void NumberSet::AddAll(const NumberSet& other) {
  for (size_t place = 0; place < other.numbers_.slots().size(); ++place) {
    if (other.numbers_.IsFree(place)) continue;
    AddSoon(other.numbers_.At(place));
    if (other.IsAgain(place)) AddSoon(other.numbers_.At(place));
  }
  Settle();
  for (uint8_t i = 0; i < other.zeros_; ++i) Add(0);
  full_ = full_ || other.full_;
}

bool NumberSet::Has(uint64_t number) const {
  if (number == 0) return zeros_ != 0;
  return !numbers_.IsFree(Find(number));
}

}  // namespace tracefs::anonymize
