// The checksum filter (paper section 2.4), both directions: whether a block is
// what was written, in its place, in its trace. THREATS.md says against whom,
// FORMAT.md section 11.2 has the bytes.
#pragma once

#include <memory>
#include <optional>

#include "filters/output/anchor.h"
#include "filters/output/checksum_head.h"
#include "filters/output/key_ring.h"
#include "filters/output/stage_decoder.h"
#include "tracefs/crypto/seal_state.h"
#include "tracefs/crypto/signature.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

struct ChecksumOptions {
  ChecksumAlgorithm algorithm = ChecksumAlgorithm::kHmacSha256;
  // One of these for the hmac algorithms, none for crc32c.
  std::optional<SecretKey> key;
  std::optional<SealState> seal;  // seal = forward
  std::optional<Signer> signer;   // sign = ed25519
  std::unique_ptr<AnchorSink> anchor;
  uint64_t anchor_every = 16;  // blocks; the first and the last always
  uint32_t heartbeat_ms = 0;   // what the tracer promises
  size_t block_bytes = 0;
};

std::unique_ptr<OutputFilter> MakeChecksum(ChecksumOptions options,
                                           std::unique_ptr<OutputFilter> next);

// Checks what it has keys for and notes what it found. `algorithm` is what the
// chain text says, "" for nothing: a payload that says otherwise is refused.
// `keys` outlives the decoder.
std::unique_ptr<StageDecoder> MakeChecksumDecoder(std::string_view algorithm,
                                                  const KeyRing* keys);

}  // namespace tracefs
