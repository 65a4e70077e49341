// An output filter and its inverse: the worked example of docs/extending.md.
#include <algorithm>
#include <memory>
#include <utility>

#include "filters/output/payload_filter.h"
#include "filters/output/rows.h"

namespace tracefs {
namespace {

void Invert(ByteSpan from, std::span<std::byte> to) {
  std::transform(from.begin(), from.end(), to.begin(),
                 [](std::byte b) { return ~b; });
}

class InvertFilter final : public PayloadFilter {
 public:
  using PayloadFilter::PayloadFilter;

 protected:
  Result<ByteSpan> Encode(ByteSpan block, const BlockInfo&) override {
    const std::span<std::byte> out = memory_.Get(block.size());
    Invert(block, out);
    return ByteSpan(out);
  }

 private:
  Scratch memory_;
};

class InvertDecoder final : public StageDecoder {
 public:
  Status Decode(const BlockId&, ByteSpan payload, DecodeMemory& memory,
                BlockNotes*, ByteSpan* out) override {
    const std::span<std::byte> block = memory.Get(payload.size());
    Invert(payload, block);
    *out = block;
    return Status::Ok();
  }
};

Result<std::unique_ptr<OutputFilter>> Make(const ConfigEntry& entry,
                                           std::unique_ptr<OutputFilter> next,
                                           OutputFilterInputs) {
  return std::unique_ptr<OutputFilter>(
      std::make_unique<InvertFilter>(entry.Number("block"), std::move(next)));
}

Result<std::unique_ptr<StageDecoder>> MakeDecoder(const ChainStage&,
                                                  const KeyRing*) {
  return std::unique_ptr<StageDecoder>(std::make_unique<InvertDecoder>());
}

constexpr OptionRow kOptions[] = {kBlockOption};

}  // namespace

OutputFilterRow InvertRow() {
  return {.entry = {.name = "invert",
                    .role = EntryRole::kFilter,
                    .options = kOptions},
          .help = "turns every bit around",
          .make = &Make,
          .make_decoder = &MakeDecoder};
}

}  // namespace tracefs
