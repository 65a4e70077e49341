#include "filters/output/compress.h"
#include "filters/output/rows.h"

namespace tracefs {
namespace {

constexpr std::string_view kAlgorithms[] = {"zlib", "zstd"};
constexpr std::string_view kLayouts[] = {"columns", "bytes"};
constexpr OptionRow kOptions[] = {
    {.name = "alg", .type = ValueType::kChoice, .words = kAlgorithms},
    {.name = "level", .type = ValueType::kCount, .min = 1, .max = 19},
    {.name = "layout", .type = ValueType::kChoice, .words = kLayouts},
    kBlockOption,
};

std::string_view AlgorithmOf(const ConfigEntry& entry) {
  return entry.Text("alg", "zlib");
}

CompressOptions OptionsOf(const ConfigEntry& entry) {
  CompressOptions options;
  if (AlgorithmOf(entry) == "zstd") {
    options.algorithm = CompressAlgorithm::kZstd;
  }
  options.level = static_cast<int>(entry.Number("level"));
  options.columns = entry.Text("layout", "columns") == "columns";
  options.block_bytes = entry.Number("block");
  return options;
}

Status Check(const ConfigEntry& entry) {
  const CompressOptions options = OptionsOf(entry);
  const int most = MaxCompressLevel(options.algorithm);
  if (options.level <= most) return Status::Ok();
  return Status::Invalid("compress: level " + std::to_string(options.level) +
                         " is beyond " + std::string(AlgorithmOf(entry)) +
                         "'s highest, " + std::to_string(most));
}

Result<std::unique_ptr<OutputFilter>> Make(const ConfigEntry& entry,
                                           std::unique_ptr<OutputFilter> next,
                                           OutputFilterInputs) {
  return MakeCompress(OptionsOf(entry), std::move(next));
}

std::string Parameters(const ConfigEntry& entry) {
  return "alg=" + std::string(AlgorithmOf(entry));
}

Result<std::unique_ptr<StageDecoder>> MakeDecoder(const ChainStage&,
                                                  const KeyRing*) {
  return MakeCompressDecoder();
}

}  // namespace

OutputFilterRow CompressRow() {
  return {.entry = {.name = "compress",
                    .role = EntryRole::kFilter,
                    .options = kOptions},
          .help = "makes blocks smaller, each by itself: zlib or zstd",
          .make = &Make,
          .parameters = &Parameters,
          .make_decoder = &MakeDecoder,
          .check = &Check};
}

}  // namespace tracefs
