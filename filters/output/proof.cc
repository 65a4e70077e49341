#include "filters/output/proof.h"

namespace tracefs {
namespace {

constexpr char kKeptByTheHost[] =
    "protected by a key that the host kept, where one that it erases was given";

bool NeedsNoKey(const ChecksumNote& note) {
  return note.head.algorithm == ChecksumAlgorithm::kCrc32c &&
         !note.head.has_signature;
}

}  // namespace

BlockProof ProofOf(const BlockNotes& notes, const KeyRing& keys) {
  const bool erased = keys.has_verify_secrets();
  for (const ChecksumNote& note : notes.checksums) {
    if ((note.keyed && (note.head.forward || !erased)) ||
        (note.signature_checked && !erased)) {
      return {.note = &note};
    }
  }
  if (notes.authentic_cipher && !erased) return {.cipher = true};
  for (const ChecksumNote& note : notes.checksums) {
    if (NeedsNoKey(note)) continue;
    if (note.keyed || note.signature_checked) return {.why = kKeptByTheHost};
    const KeyId& id = note.head.algorithm == ChecksumAlgorithm::kCrc32c
                          ? note.head.sign_id
                          : note.head.key_id;
    return {.why = "protected with the key " + KeyIdText(id) +
                   ", which is not among those given",
            .key_missing = true};
  }
  // A cipher's key is one that the host keeps.
  if (notes.authentic_cipher) return {.why = kKeptByTheHost};
  return {.key_missing = notes.cipher_key_missing};
}

}  // namespace tracefs
