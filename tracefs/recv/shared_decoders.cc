#include "tracefs/recv/shared_decoders.h"

#include <algorithm>

namespace tracefs {
namespace {

// The decoder of one trace, which is its chain's name.
class ByName final : public format::PayloadDecoder {
 public:
  ByName(SharedDecoders* all, std::string chain)
      : all_(all), chain_(std::move(chain)) {}

  Status Decode(const format::FrameHeader& header, ByteSpan payload,
                std::vector<std::byte>* block) override {
    return all_->Decode(chain_, header, payload, block);
  }

 private:
  SharedDecoders* const all_;
  const std::string chain_;
};

}  // namespace

Result<ChainDecoder*> SharedDecoders::Find(const std::string& chain) {
  if (std::shared_ptr<const KeyRing> now = keys_->Get(); now != used_) {
    decoders_.clear();
    used_ = std::move(now);
  }
  const auto found =
      std::find_if(decoders_.begin(), decoders_.end(),
                   [&](const Entry& entry) { return entry.chain == chain; });
  if (found != decoders_.end()) {
    decoders_.splice(decoders_.begin(), decoders_, found);
    return &decoders_.front().decoder;
  }
  Result<ChainDecoder> made = ChainDecoder::Create(chain, used_.get(), limits_);
  if (!made.ok()) return made.status();
  if (decoders_.size() == kMaxChains) decoders_.pop_back();
  decoders_.push_front({chain, *std::move(made)});
  return &decoders_.front().decoder;
}

format::PayloadDecoderFactory SharedDecoders::Factory() {
  return [this](const format::Preamble& preamble)
             -> Result<std::unique_ptr<format::PayloadDecoder>> {
    // What cannot be undone shows at once.
    if (const auto found = Find(preamble.chain); !found.ok()) {
      return found.status();
    }
    return std::unique_ptr<format::PayloadDecoder>(
        std::make_unique<ByName>(this, preamble.chain));
  };
}

Status SharedDecoders::Decode(const std::string& chain,
                              const format::FrameHeader& header,
                              ByteSpan payload, std::vector<std::byte>* block,
                              BlockNotes* notes) {
  const Result<ChainDecoder*> found = Find(chain);
  if (!found.ok()) return found.status();
  ChainDecoder& decoder = **found;
  ByteSpan decoded;
  BlockNotes unasked;
  Status status =
      decoder.Decode({.serial = header.serial, .sequence = header.sequence},
                     payload, notes != nullptr ? notes : &unasked, &decoded);
  if (status.ok() && decoded.size() > limits_.max_block_bytes) {
    status = Status::Corrupt("a block of " + std::to_string(decoded.size()) +
                             " bytes is larger than --max-block allows");
  }
  if (status.ok()) block->assign(decoded.begin(), decoded.end());
  decoder.Shrink(kKeptBytes);
  return status;
}

}  // namespace tracefs
