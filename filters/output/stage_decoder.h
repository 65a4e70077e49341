// StageDecoder: the inverse of one output filter. Payloads may be hostile.
#pragma once

#include <cstdint>
#include <span>
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

// What decoders found out about a block; proof.h says what it proves.
struct BlockNotes {
  // From the last checksum of the chain to the first.
  std::vector<ChecksumNote> checksums;
  // Decrypted by a cipher that authenticates, with a shared secret.
  bool authentic_cipher = false;
  // Decrypted with an age identity, for whose recipient anyone can encrypt.
  bool opened_by_identity = false;
  // Not decrypted, for a key that is not among those given.
  bool cipher_key_missing = false;
};

// The memory of all decoders of a chain, which work one after the other: two
// results, the last and the one that is being made from it, and one room to
// work in.
class DecodeMemory {
 public:
  // Decoders refuse to make more than `max_bytes` of a block.
  explicit DecodeMemory(size_t max_bytes = format::kMaxPayloadBytes)
      : max_bytes_(max_bytes) {}
  size_t max_bytes() const { return max_bytes_; }

  // For what a decoder makes.
  std::span<std::byte> Get(size_t bytes) { return made_[turn_].Get(bytes); }
  // Until it returns.
  std::span<std::byte> GetWork(size_t bytes) { return work_.Get(bytes); }

  // For the chain: what was made last stays while the next is made.
  void Turn() { turn_ = 1 - turn_; }
  // What is held.
  size_t bytes() const {
    return made_[0].capacity() + made_[1].capacity() + work_.capacity();
  }
  // Gives back each piece that is larger than `keep`; its contents are gone.
  void Shrink(size_t keep) {
    for (Scratch* s : {&made_[0], &made_[1], &work_}) s->Shrink(keep);
  }

 private:
  size_t max_bytes_;
  Scratch made_[2];
  Scratch work_;
  size_t turn_ = 0;
};

// Blocks stand alone: what a decoder keeps between them only saves work.
// Threads: one at a time.
class StageDecoder {
 public:
  virtual ~StageDecoder() = default;
  // Undoes the filter. `*out` lies within `payload` or in `memory`, and never
  // has more than memory.max_bytes(). The message of an error says what
  // is wrong, not where: the caller knows the block.
  virtual Status Decode(const BlockId& id, ByteSpan payload,
                        DecodeMemory& memory, BlockNotes* notes,
                        ByteSpan* out) = 0;
};

}  // namespace tracefs
