// StageDecoder: the inverse of one output filter. Payloads may be hostile.
#ifndef FILTERS_OUTPUT_STAGE_DECODER_H_
#define FILTERS_OUTPUT_STAGE_DECODER_H_

#include <cstdint>
#include <vector>

#include "filters/output/checksum_head.h"
#include "filters/output/scratch.h"
#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/format/constants.h"

namespace tracefs {

// Which block of which trace a payload claims to be: from its frame header.
struct BlockId {
  format::Serial serial{};
  uint64_t sequence = 0;
};

// What a checksum that is not wrong says of its block.
struct ChecksumNote {
  ChecksumHead head;
  Digest own_link{};               // what the next block must name as its link
  bool tag_checked = false;        // there was a key for it, or it needs none
  bool keyed = false;              // and it was checked with a key
  bool signature_checked = false;  // by a public key that we were given
};

// What decoders found out about a block, for tracefs-verify.
struct BlockNotes {
  // From the last checksum of the chain to the first.
  std::vector<ChecksumNote> checksums;
  // Decrypted by a cipher that authenticates, with a shared secret.
  bool authentic_cipher = false;
};

// Blocks stand alone: what a decoder keeps between them only saves work.
// Threads: one at a time.
class StageDecoder {
 public:
  virtual ~StageDecoder() = default;
  // Undoes the filter. `*out` lies within `payload` or in `memory`, and never
  // has more than format::kMaxPayloadBytes. The message of an error says what
  // is wrong, not where: the caller knows the block.
  virtual Status Decode(const BlockId& id, ByteSpan payload, Scratch& memory,
                        BlockNotes* notes, ByteSpan* out) = 0;
};

}  // namespace tracefs

#endif  // FILTERS_OUTPUT_STAGE_DECODER_H_
