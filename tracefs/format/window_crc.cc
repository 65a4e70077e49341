#include "tracefs/format/window_crc.h"

#include <array>

#include "tracefs/base/crc32c.h"

namespace tracefs::format {
namespace {

constexpr uint64_t kSpacing = 4096;
// CRC-32C's polynomial and x^0, x^1, in reflected order.
constexpr uint32_t kPolynomial = 0x82f63b78;
constexpr uint32_t kOne = 0x80000000;
constexpr uint32_t kX = 0x40000000;

constexpr uint32_t Multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = kOne; bit != 0; bit >>= 1) {
    if (a & bit) product ^= b;
    b = (b & 1) ? (b >> 1) ^ kPolynomial : b >> 1;
  }
  return product;
}

// x^(2^n).
constexpr std::array<uint32_t, 64> kPowers = [] {
  std::array<uint32_t, 64> powers{};
  powers[0] = kX;
  for (size_t n = 1; n < powers.size(); ++n) {
    powers[n] = Multiply(powers[n - 1], powers[n - 1]);
  }
  return powers;
}();

// `crc` times x^(8 bytes): what appending so many zero bytes does to it.
uint32_t Shift(uint32_t crc, uint64_t bytes) {
  uint32_t factor = kOne;
  for (size_t n = 3; bytes != 0 && n < kPowers.size(); bytes >>= 1, ++n) {
    if (bytes & 1) factor = Multiply(kPowers[n], factor);
  }
  return Multiply(factor, crc);
}

}  // namespace

uint32_t CrcOfSecond(uint32_t first, uint32_t both, uint64_t second_bytes) {
  return Shift(first, second_bytes) ^ both;
}

uint32_t CrcOfBoth(uint32_t first, uint32_t second, uint64_t second_bytes) {
  return Shift(first, second_bytes) ^ second;
}

void WindowCrc::Start(uint64_t offset) {
  front_ = offset;
  front_crc_ = 0;
  checkpoints_.clear();
}

void WindowCrc::Advance(uint64_t offset, ByteSpan window) {
  const uint32_t crc = Prefix(offset, window);
  while (!checkpoints_.empty() && first_ < offset) {
    checkpoints_.pop_front();
    first_ += kSpacing;
  }
  front_ = offset;
  front_crc_ = crc;
}

uint32_t WindowCrc::Of(uint64_t begin, uint64_t end, ByteSpan window) {
  const uint32_t before = Prefix(begin, window);
  return CrcOfSecond(before, Prefix(end, window), end - begin);
}

uint32_t WindowCrc::Prefix(uint64_t offset, ByteSpan window) {
  const auto bytes = [&](uint64_t from, uint64_t to) {
    return window.subspan(from - front_, to - from);
  };
  if (checkpoints_.empty()) {
    if (offset - front_ < kSpacing) {
      return Crc32c(bytes(front_, offset), front_crc_);
    }
    first_ = front_ + kSpacing;
    checkpoints_.push_back(Crc32c(bytes(front_, first_), front_crc_));
  }
  if (offset < first_) return Crc32c(bytes(front_, offset), front_crc_);
  const uint64_t index = (offset - first_) / kSpacing;
  while (checkpoints_.size() <= index) {
    const uint64_t last = first_ + (checkpoints_.size() - 1) * kSpacing;
    checkpoints_.push_back(
        Crc32c(bytes(last, last + kSpacing), checkpoints_.back()));
  }
  const uint64_t at = first_ + index * kSpacing;
  return Crc32c(bytes(at, offset), checkpoints_[index]);
}

}  // namespace tracefs::format
