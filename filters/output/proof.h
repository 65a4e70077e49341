// What the notes of a block prove to the holder of some keys.
#pragma once

#include <string>

#include "filters/output/key_ring.h"
#include "filters/output/stage_decoder.h"

namespace tracefs {

struct BlockProof {
  // What shows that a holder of a key made the block: a checksum, or else its
  // cipher.
  const ChecksumNote* note = nullptr;
  bool cipher = false;
  bool proven() const { return note != nullptr || cipher; }
  // Where nothing does: why not; empty if no key protects the block.
  std::string why = {};
  // A key that is not among those given might show it.
  bool key_missing = false;
};

// With a verify secret only what a host could not forge later counts. `notes`
// outlives the result.
BlockProof ProofOf(const BlockNotes& notes, const KeyRing& keys);

}  // namespace tracefs
