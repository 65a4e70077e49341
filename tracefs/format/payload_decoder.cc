#include "tracefs/format/payload_decoder.h"

#include "tracefs/base/text.h"

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

std::vector<std::string> ChainStages(std::string_view chain) {
  std::vector<std::string> stages;
  while (!chain.empty()) {
    std::string_view stage = Trim(TakeUpTo(chain, ';'));
    if (!stage.empty()) stages.emplace_back(TakeUpTo(stage, ' '));
  }
  return stages;
}

Result<std::unique_ptr<PayloadDecoder>> MakePlainDecoder(
    const Preamble& preamble) {
  const std::vector<std::string> stages = ChainStages(preamble.chain);
  for (size_t i = 0; i + 1 < stages.size(); ++i) {
    if (stages[i] == "async" || stages[i] == "throttle") continue;
    return Status::Invalid("the output chain \"" + preamble.chain +
                           "\" has the filter \"" + stages[i] +
                           "\", which this reader cannot undo");
  }
  return std::unique_ptr<PayloadDecoder>(std::make_unique<PlainDecoder>());
}

}  // namespace tracefs::format
