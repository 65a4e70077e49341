#include "tracefs/format/payload_decoder.h"

namespace tracefs::format {
namespace {

class PlainDecoder : public PayloadDecoder {
 public:
  Status Decode(const FrameHeader&, ByteSpan payload,
                std::vector<std::byte>* block) override {
    block->assign(payload.begin(), payload.end());
    return {};
  }
};

}  // namespace

Result<std::unique_ptr<PayloadDecoder>> MakePlainDecoder(
    const Preamble& preamble) {
  if (preamble.chain.find(';') != std::string::npos) {
    return Status::Invalid("the output chain \"" + preamble.chain +
                           "\" has filters, and this reader can undo none");
  }
  return std::unique_ptr<PayloadDecoder>(std::make_unique<PlainDecoder>());
}

}  // namespace tracefs::format
