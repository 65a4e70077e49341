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

std::vector<std::string> ChainStages(std::string_view chain) {
  std::vector<std::string> stages;
  while (!chain.empty()) {
    const size_t end = std::min(chain.find(';'), chain.size());
    std::string_view stage = chain.substr(0, end);
    chain.remove_prefix(std::min(end + 1, chain.size()));
    while (!stage.empty() && stage.front() == ' ') stage.remove_prefix(1);
    stage = stage.substr(0, stage.find(' '));
    if (!stage.empty()) stages.emplace_back(stage);
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
