// The bytes that the checksum filter adds to a block: a head before it, a tag
// and perhaps a signature after it. FORMAT.md, section 11.2.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "tracefs/base/bytes.h"
#include "tracefs/crypto/hash.h"
#include "tracefs/crypto/secret.h"
#include "tracefs/crypto/signature.h"
#include "tracefs/format/constants.h"

namespace tracefs {

enum class ChecksumAlgorithm : uint8_t {
  kCrc32c = 1,
  kHmacMd5 = 2,
  kHmacSha256 = 3,
};
// "hmac-sha256"; "" for a number that is none.
std::string_view ChecksumName(ChecksumAlgorithm algorithm);
// 4, 16 or 32; 0 for a number that is none.
size_t ChecksumTagBytes(ChecksumAlgorithm algorithm);

inline constexpr size_t kChecksumHeadBytes = 88;
inline constexpr uint64_t kNoPrevious = ~uint64_t{0};

struct ChecksumHead {
  ChecksumAlgorithm algorithm = ChecksumAlgorithm::kHmacSha256;
  bool last = false;     // the block ends the trace
  bool forward = false;  // each block has a key of its own (seal = forward)
  bool has_signature = false;
  uint32_t heartbeat_ms = 0;  // a block at least this often; 0 = no promise
  KeyId key_id{};             // zeros for crc32c
  KeyId sign_id{};            // zeros without a signature
  uint64_t epoch = 0;         // of the sealing state; 0 without
  uint64_t previous = kNoPrevious;  // number of the block written before
  // When the block was sealed; of a trace whose times are hidden, since it
  // began.
  uint64_t monotonic_ns = 0;
  uint64_t real_ns = 0;  // the same, since 1970; then 0
  Digest link{};  // LinkOf what the previous block ends with; of the first: of
                  // the preamble
};

void EncodeChecksumHead(const ChecksumHead& head, std::byte* out);
// False unless these are kChecksumHeadBytes that a head can have.
bool DecodeChecksumHead(ByteSpan bytes, ChecksumHead* head);

// What is hashed before the payload: which block of which trace it is.
inline constexpr std::string_view kChecksumLabel = "tracefs-checksum";
inline constexpr std::string_view kSignatureLabel = "tracefs-signed-1";
std::array<std::byte, 40> BlockPrefix(std::string_view label,
                                      const format::Serial& serial,
                                      uint64_t sequence);

// SHA-256 of `bytes`.
Digest LinkOf(ByteSpan bytes);

// The root of the keys of the blocks of one trace.
SecretKey SealRoot(KeySpan epoch_key, const format::Serial& serial);

}  // namespace tracefs
