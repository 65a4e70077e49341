// DistinctCount: how many different things there were; exact up to some, then
// HyperLogLog (Flajolet et al. 2007): the standard error is 3.3 %.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

namespace tracefs::query {

class DistinctCount {
 public:
  static constexpr size_t kExact = 128;

  // A hash of the thing, all of whose bits count.
  void Add(uint64_t hash) {
    if (registers_ != nullptr) {
      AddRegister(hash);
      return;
    }
    const auto at = std::ranges::lower_bound(hashes_, hash);
    if (at != hashes_.end() && *at == hash) return;
    hashes_.insert(at, hash);
    if (hashes_.size() > kExact) GoOver();
  }
  void Add(const DistinctCount& other) {
    for (const uint64_t hash : other.hashes_) Add(hash);
    if (other.registers_ == nullptr) return;
    GoOver();
    for (size_t i = 0; i < kRegisters; ++i) {
      (*registers_)[i] = std::max((*registers_)[i], (*other.registers_)[i]);
    }
  }

  bool exact() const { return registers_ == nullptr; }
  uint64_t Estimate() const {
    if (exact()) return hashes_.size();
    constexpr double kM = kRegisters;
    double sum = 0;
    size_t zeros = 0;
    for (const uint8_t rank : *registers_) {
      sum += std::ldexp(1.0, -rank);
      zeros += rank == 0 ? 1 : 0;
    }
    double estimate = 0.7213 / (1 + 1.079 / kM) * kM * kM / sum;
    if (estimate <= 2.5 * kM && zeros != 0) {
      estimate = kM * std::log(kM / static_cast<double>(zeros));
    }
    return static_cast<uint64_t>(std::llround(estimate));
  }
  size_t bytes() const {
    return hashes_.capacity() * sizeof(uint64_t) +
           (exact() ? 0 : sizeof(Registers));
  }

 private:
  static constexpr int kBits = 10;
  static constexpr size_t kRegisters = size_t{1} << kBits;
  using Registers = std::array<uint8_t, kRegisters>;

  void GoOver() {
    if (registers_ != nullptr) return;
    registers_ = std::make_unique<Registers>();
    registers_->fill(0);
    for (const uint64_t hash : hashes_) AddRegister(hash);
    hashes_ = std::vector<uint64_t>();  // {} would only empty it
  }
  void AddRegister(uint64_t hash) {
    const size_t i = hash >> (64 - kBits);
    const auto rank = static_cast<uint8_t>(
        std::min(std::countl_zero(hash << kBits), 64 - kBits) + 1);
    (*registers_)[i] = std::max((*registers_)[i], rank);
  }

  std::vector<uint64_t> hashes_;  // sorted, while there are few
  std::unique_ptr<Registers> registers_;
};

// Mixes all bits of a number (the finalizer of splitmix64).
inline uint64_t MixedHash(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// What DistinctCount takes of a number that is one machine's own, or one
// mount's.
inline uint64_t DistinctNumber(uint32_t of, uint64_t number) {
  return MixedHash(number ^ MixedHash(of));
}

}  // namespace tracefs::query
