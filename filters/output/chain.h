// The output chain as text, the form in which a preamble names it, and its
// inverse: "compress alg=zstd; file".
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/config.h"
#include "filters/output/key_ring.h"
#include "filters/output/stage_decoder.h"
#include "tracefs/format/payload_decoder.h"

namespace tracefs {

// Output filters of one chain. A reader undoes them all for each block: the
// limit bounds what a hostile trace can ask for.
inline constexpr size_t kMaxChainFilters = 16;

// One stage of a chain text.
struct ChainStage {
  std::string name;
  std::vector<std::pair<std::string, std::string>> parameters;

  // The value of a parameter, or "".
  std::string_view Get(std::string_view parameter) const;
};

// Splits a chain text; any text has some meaning.
std::vector<ChainStage> ParseChain(std::string_view chain);

// The chain text of a tracer's output section, its driver last: names, and the
// parameters that a reader needs. Never a key, a path or a host.
std::string ChainText(std::span<const ConfigEntry> output);

// What the config's grammar cannot see: a filter that must be the first and is
// not, too many of them, what one has to say of its own options. kInvalid, with
// the position.
Status CheckChain(std::string_view file_name,
                  std::span<const ConfigEntry> output);

// Whether some filter of a chain text did what only a key can check.
bool NeedsKey(std::string_view chain);

// What a reader bears of a trace that may be hostile.
struct ChainLimits {
  size_t max_filters = kMaxChainFilters;
  size_t max_block_bytes = format::kMaxPayloadBytes;  // decoded, at any stage
};

// Undoes all filters of a chain.
class ChainDecoder {
 public:
  // kInvalid if a stage is unknown; the message names it and what to do.
  // `keys` outlives the decoder.
  static Result<ChainDecoder> Create(std::string_view chain,
                                     const KeyRing* keys,
                                     const ChainLimits& limits = {});

  // The block in `payload`; valid until the next call, and as long as
  // `payload`. Also on failure, `*notes` has what was found before. Threads:
  // one at a time.
  Status Decode(const BlockId& id, ByteSpan payload, BlockNotes* notes,
                ByteSpan* block);

  // Memory that is kept from block to block, and giving it back, but for small
  // pieces of up to `keep` bytes.
  size_t memory_bytes() const { return memory_.bytes(); }
  void Shrink(size_t keep) { memory_.Shrink(keep); }

 private:
  struct Stage {
    std::string name;
    std::unique_ptr<StageDecoder> decoder;
  };
  explicit ChainDecoder(size_t max_block_bytes) : memory_(max_block_bytes) {}

  std::vector<Stage> stages_;  // in the order in which they are undone
  DecodeMemory memory_;
};

// For format::TraceReaderOptions. A checksum whose key is missing is left
// unchecked; what cannot be decrypted is an error that says what is missing.
// `noted` gets what was found out about each block that was decoded, on the
// thread that did; may be empty.
using NotesSink = std::function<void(const BlockNotes&)>;
format::PayloadDecoderFactory MakeDecoderFactory(
    std::shared_ptr<const KeyRing> keys = std::make_shared<KeyRing>(),
    NotesSink noted = nullptr);

}  // namespace tracefs
