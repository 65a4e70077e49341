#include "filters/output/chain.h"

#include <functional>

#include "filters/output/table.h"
#include "tracefs/base/join.h"
#include "tracefs/base/text.h"

namespace tracefs {
namespace {

bool IsWithin(ByteSpan part, ByteSpan whole) {
  const std::less_equal<const std::byte*> not_after;
  return not_after(whole.data(), part.data()) &&
         not_after(part.data() + part.size(), whole.data() + whole.size());
}

class ChainPayloadDecoder final : public format::PayloadDecoder {
 public:
  ChainPayloadDecoder(std::shared_ptr<const KeyRing> keys, NotesSink noted,
                      ChainDecoder chain)
      : keys_(std::move(keys)),
        noted_(std::move(noted)),
        chain_(std::move(chain)) {}

  Status Decode(const format::FrameHeader& header, ByteSpan payload,
                std::vector<std::byte>* block) override {
    ByteSpan decoded;
    BlockNotes notes;
    Status status =
        chain_.Decode({.serial = header.serial, .sequence = header.sequence},
                      payload, &notes, &decoded);
    if (!status.ok()) return status;
    block->assign(decoded.begin(), decoded.end());
    if (noted_) noted_(notes);
    return status;
  }

 private:
  const std::shared_ptr<const KeyRing> keys_;
  const NotesSink noted_;
  ChainDecoder chain_;
};

}  // namespace

std::string_view ChainStage::Get(std::string_view parameter) const {
  for (const auto& [name_of, value] : parameters) {
    if (name_of == parameter) return value;
  }
  return {};
}

std::vector<ChainStage> ParseChain(std::string_view chain) {
  std::vector<ChainStage> stages;
  while (!chain.empty()) {
    std::string_view text = Trim(TakeUpTo(chain, ';'));
    if (text.empty()) continue;
    ChainStage stage;
    stage.name = TakeUpTo(text, ' ');
    for (text = Trim(text); !text.empty(); text = Trim(text)) {
      std::string_view value = TakeUpTo(text, ' ');
      const std::string_view name = TakeUpTo(value, '=');
      stage.parameters.emplace_back(name, value);
    }
    stages.push_back(std::move(stage));
  }
  return stages;
}

std::string ChainText(std::span<const ConfigEntry> output) {
  std::string text;
  for (const ConfigEntry& entry : output) {
    const OutputFilterRow* row = FindOutputFilter(entry.name);
    if (row != nullptr && !row->in_chain_text) continue;
    AppendWord(entry.name, "; ", &text);
    if (row == nullptr || row->parameters == nullptr) continue;
    const std::string parameters = row->parameters(entry);
    if (!parameters.empty()) text += ' ' + parameters;
  }
  return text;
}

Status CheckChain(std::string_view file_name,
                  std::span<const ConfigEntry> output) {
  size_t filters = 0;
  std::string_view changed_by;  // the first filter that changes bytes
  for (const ConfigEntry& entry : output) {
    if (entry.role != EntryRole::kFilter) continue;
    const OutputFilterRow* row = FindOutputFilter(entry.name);
    if (row != nullptr && row->needs_messages && !changed_by.empty()) {
      return ErrorAt(file_name, entry.position,
                     entry.name + " must stand before " +
                         std::string(changed_by) +
                         ", which makes of messages what it cannot read");
    }
    if (row != nullptr && row->make_decoder != nullptr && changed_by.empty()) {
      changed_by = entry.name;
    }
    if (row != nullptr && row->first_only && filters != 0) {
      return ErrorAt(file_name, entry.position,
                     entry.name +
                         " must be the first output filter: it takes over the "
                         "blocks from the traced threads; move it to the "
                         "front");
    }
    if (row != nullptr && row->first_only && output.back().Has("unbuffered")) {
      return ErrorAt(file_name, entry.position,
                     entry.name + " and " + output.back().name +
                         " unbuffered exclude each other: one hands blocks on "
                         "later, the other wants them out at once");
    }
    if (++filters > kMaxChainFilters) {
      return ErrorAt(file_name, entry.position,
                     "more than " + std::to_string(kMaxChainFilters) +
                         " output filters in a chain");
    }
    if (row == nullptr || row->check == nullptr) continue;
    if (const Status s = row->check(entry); !s.ok()) {
      return ErrorAt(file_name, entry.position, s.message());
    }
  }
  return Status::Ok();
}

bool NeedsKey(std::string_view chain) {
  std::vector<ChainStage> stages = ParseChain(chain);
  // The last stage is the driver, whatever its name.
  if (!stages.empty()) stages.pop_back();
  return std::any_of(stages.begin(), stages.end(), [](const ChainStage& stage) {
    const OutputFilterRow* row = FindOutputFilter(stage.name);
    return row != nullptr && row->needs_key != nullptr && row->needs_key(stage);
  });
}

Result<ChainDecoder> ChainDecoder::Create(std::string_view chain,
                                          const KeyRing* keys,
                                          const ChainLimits& limits) {
  const std::vector<ChainStage> stages = ParseChain(chain);
  ChainDecoder decoder(limits.max_block_bytes);
  // The last stage is the driver, which changes nothing.
  for (size_t i = stages.size(); i-- > 1;) {
    const ChainStage& stage = stages[i - 1];
    const OutputFilterRow* row = FindOutputFilter(stage.name);
    if (row == nullptr) {
      return Status::Invalid("the trace went through the output filter " +
                             Quoted(stage.name) +
                             ", which this reader does not know; use a newer "
                             "Tracefs");
    }
    if (row->make_decoder == nullptr) continue;
    if (decoder.stages_.size() == limits.max_filters) {
      return Status::Invalid("the trace's chain has more than " +
                             std::to_string(limits.max_filters) +
                             " output filters");
    }
    Result<std::unique_ptr<StageDecoder>> made = row->make_decoder(stage, keys);
    if (!made.ok()) return made.status().Prefixed(stage.name);
    decoder.stages_.push_back({stage.name, *std::move(made)});
  }
  return decoder;
}

Status ChainDecoder::Decode(const BlockId& id, ByteSpan payload,
                            BlockNotes* notes, ByteSpan* block) {
  for (Stage& stage : stages_) {
    ByteSpan out;
    if (Status s = stage.decoder->Decode(id, payload, memory_, notes, &out);
        !s.ok()) {
      return s.Prefixed(stage.name);
    }
    // What was just made is the next stage's input and must stay; a stage that
    // only took a part of its own input made nothing.
    if (!IsWithin(out, payload)) memory_.Turn();
    payload = out;
  }
  *block = payload;
  return Status::Ok();
}

format::PayloadDecoderFactory MakeDecoderFactory(
    std::shared_ptr<const KeyRing> keys, NotesSink noted) {
  return [keys, noted](const format::Preamble& preamble)
             -> Result<std::unique_ptr<format::PayloadDecoder>> {
    Result<ChainDecoder> chain =
        ChainDecoder::Create(preamble.chain, keys.get());
    if (!chain.ok()) return chain.status();
    return std::unique_ptr<format::PayloadDecoder>(
        std::make_unique<ChainPayloadDecoder>(keys, noted, *std::move(chain)));
  };
}

}  // namespace tracefs
