// The encryption filter (paper section 2.4), both directions: contents that
// only the holders of a key can read. THREATS.md says against whom, FORMAT.md
// section 11.3 has the bytes.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "filters/output/key_ring.h"
#include "filters/output/stage_decoder.h"
#include "tracefs/crypto/age.h"
#include "tracefs/crypto/cipher.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

struct EncryptOptions {
  CipherId cipher = CipherId::kAes256Gcm;
  // One of the two. With recipients each trace has a data key of its own, which
  // the host forgets.
  std::optional<SecretKey> key;
  std::vector<AgeRecipient> recipients;
  size_t block_bytes = 0;
};

std::unique_ptr<OutputFilter> MakeEncrypt(EncryptOptions options,
                                          std::unique_ptr<OutputFilter> next);

// `cipher` is what the chain text says, "" for nothing: a payload that says
// otherwise is refused. `keys` outlives the decoder.
std::unique_ptr<StageDecoder> MakeEncryptDecoder(std::string_view cipher,
                                                 const KeyRing* keys);

// --- The payload: this head, a wrapped key or nothing, what the cipher made.
inline constexpr size_t kEncryptHeadBytes = 40;

}  // namespace tracefs
