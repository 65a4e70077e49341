// WindowCrc: the CRC-32C of any range of a sliding window, in time that does
// not depend on the length of the range.
//
// Damaged or hostile input may hold a false frame header every 40 bytes, each
// claiming 64 MiB; checking each claim in full would take hours. CRCs of
// prefixes, kept every few KiB, and the linearity of the CRC answer each claim
// in about a microsecond: crc(AB) = shift(crc(A), |B|) ^ crc(B).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "tracefs/base/bytes.h"

namespace tracefs::format {

// The CRC of B from those of A and AB, |B| being `second_bytes`.
uint32_t CrcOfSecond(uint32_t first, uint32_t both, uint64_t second_bytes);
// The CRC of AB from those of A and B.
uint32_t CrcOfBoth(uint32_t first, uint32_t second, uint64_t second_bytes);

// Offsets are of the whole input. The caller passes the bytes it holds, which
// must reach from the window's front (Start, Advance) as far as is asked.
class WindowCrc {
 public:
  // Forgets everything; the window now starts at `offset`.
  void Start(uint64_t offset);
  // Moves the front of the window to `offset`, inside the window. `window` are
  // the bytes from the old front on.
  void Advance(uint64_t offset, ByteSpan window);
  // The CRC of [begin, end). `window` are the bytes from the front on.
  uint32_t Of(uint64_t begin, uint64_t end, ByteSpan window);

 private:
  // The CRC from wherever the window started first up to `offset`.
  uint32_t Prefix(uint64_t offset, ByteSpan window);

  uint64_t front_ = 0;
  uint32_t front_crc_ = 0;
  // Prefix CRCs at first_, first_ + kSpacing, …; all behind the front.
  uint64_t first_ = 0;
  std::deque<uint32_t> checkpoints_;
};

}  // namespace tracefs::format
