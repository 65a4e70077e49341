#include "tracefs/recv/fleet/block.h"

#include <time.h>

#include "filters/output/proof.h"
#include "tracefs/base/date_text.h"
#include "tracefs/recv/shared_decoders.h"

namespace tracefs {

class BlockChecker::Seals {
 public:
  explicit Seals(std::shared_ptr<const KeyRing> keys)
      : keys_(keys), decoders_(std::make_shared<CurrentKeys>(keys), {}) {}

  // What the chain text claims proves nothing: what decoding finds does.
  Status Check(const format::FrameView& frame, bool decodes,
               FleetBlock* block) {
    BlockNotes notes;
    const Status decoded = decoders_.Decode(block->chain, frame.header,
                                            frame.payload, &scratch_, &notes);
    if (!decoded.ok() && !notes.cipher_key_missing) return decoded;
    const BlockProof proof = ProofOf(notes, *keys_);
    // Anyone can encrypt for a recipient: that is enough only where no key is
    // given that could tell who did.
    if (proof.proven() || (notes.opened_by_identity && !keys_->can_verify())) {
      if (decodes && !decoded.ok()) block->key_missing = decoded.message();
    } else if (proof.key_missing) {
      block->key_missing = proof.why.empty() ? decoded.message() : proof.why;
    } else if (!proof.why.empty()) {
      return Status::Corrupt("it is " + proof.why);
    } else if (notes.opened_by_identity) {
      block->key_missing = "no key that is given shows who encrypted them";
    } else {
      return Status::Corrupt(
          "it is neither sealed nor encrypted with one of the keys given");
    }
    return Status::Ok();
  }

 private:
  const std::shared_ptr<const KeyRing> keys_;
  SharedDecoders decoders_;
  std::vector<std::byte> scratch_;
};

BlockChecker::BlockChecker(std::shared_ptr<const KeyRing> keys, bool decodes)
    : seals_(keys != nullptr ? std::make_unique<Seals>(std::move(keys))
                             : nullptr),
      decodes_(decodes) {}
BlockChecker::~BlockChecker() = default;

Result<FleetBlock> BlockChecker::Check(const Delivery& delivery) {
  if (delivery.host.empty()) return Status::Invalid(delivery.body);
  const ByteSpan body = AsBytes(delivery.body);
  if (body.size() < 12) return Status::Corrupt("it is no block of a trace");
  const Result<size_t> length = format::PreambleLength(body.first(12));
  if (!length.ok() || *length > body.size()) {
    return Status::Corrupt("it is no block of a trace");
  }
  const Result<format::Preamble> preamble =
      format::DecodePreamble(body.first(*length));
  if (!preamble.ok()) return preamble.status();
  const auto frame = format::FrameAt(body.subspan(*length), preamble->serial);
  if (!frame || *length + format::kFrameHeaderBytes + frame->payload.size() !=
                    body.size()) {
    return Status::Corrupt("its block is damaged, or of another trace");
  }
  if (frame->header.kind !=
      static_cast<uint16_t>(format::FrameKind::kMessages)) {
    return Status::Corrupt("it has no block of messages");
  }
  FleetBlock block;
  block.chain = preamble->chain;
  block.serial = preamble->serial;
  block.sequence = frame->header.sequence;
  block.number = delivery.number;
  if (seals_ != nullptr) {
    if (Status s = seals_->Check(*frame, decodes_, &block); !s.ok()) return s;
  } else if (decodes_ && NeedsKey(block.chain)) {
    block.key_missing = "they cannot be read without a key (--key)";
  }
  block.host = delivery.host;
  block.day = DayText(delivery.time_ns);
  block.preamble = delivery.body.substr(0, *length);
  block.frame = delivery.body.substr(*length);
  block.since = std::chrono::steady_clock::now();
  return block;
}

std::string DayText(int64_t real_ns) {
  return UtcText(real_ns / 1'000'000'000, "%Y-%m-%d");
}

}  // namespace tracefs
