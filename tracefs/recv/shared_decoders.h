// SharedDecoders: undoes the output chains of many traces, one block at a time,
// with the memory of a few. Decoders keep nothing of a trace from block to
// block, so traces with the same chain text share one.
#pragma once

#include <list>
#include <memory>
#include <string>

#include "filters/output/chain.h"
#include "filters/output/key_ring.h"
#include "tracefs/format/payload_decoder.h"
#include "tracefs/recv/current_keys.h"

namespace tracefs {

// Used by one thread.
class SharedDecoders {
 public:
  SharedDecoders(std::shared_ptr<const CurrentKeys> keys, ChainLimits limits)
      : keys_(std::move(keys)), limits_(limits) {}
  SharedDecoders(const SharedDecoders&) = delete;
  SharedDecoders& operator=(const SharedDecoders&) = delete;

  // Its decoders, and what they use, last as long as this.
  format::PayloadDecoderFactory Factory();

  // Undoes `chain` for one block. Afterwards no more memory is held than
  // kMaxChains * 3 * kKeptBytes. Also on failure, `notes`, where it is not
  // null, has what was found before.
  Status Decode(const std::string& chain, const format::FrameHeader& header,
                ByteSpan payload, std::vector<std::byte>* block,
                BlockNotes* notes = nullptr);

  static constexpr size_t kMaxChains = 4;
  static constexpr size_t kKeptBytes = size_t{1} << 20;

 private:
  struct Entry {
    std::string chain;
    ChainDecoder decoder;
  };
  // The decoder of a chain, now the first of decoders_.
  Result<ChainDecoder*> Find(const std::string& chain);

  const std::shared_ptr<const CurrentKeys> keys_;
  const ChainLimits limits_;
  std::shared_ptr<const KeyRing> used_;  // by all of decoders_
  std::list<Entry> decoders_;            // the one used last first
};

}  // namespace tracefs
