// CRC-32C (Castagnoli, RFC 3720 appendix B.4), the check of every block.
#pragma once

#include <cstdint>

#include "tracefs/base/bytes.h"

namespace tracefs {

// The CRC of `bytes`, continuing from `crc`, the CRC of what came before (0 at
// the start). Uses the SSE 4.2 instruction where the processor has it.
uint32_t Crc32c(ByteSpan bytes, uint32_t crc = 0);

// The checksum of `count` zero bytes; the time does not depend on `count`.
uint32_t Crc32cZeros(uint64_t count, uint32_t crc = 0);

}  // namespace tracefs
