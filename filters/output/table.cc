#include "filters/output/table.h"

#include "filters/output/compress.h"

namespace tracefs {
namespace {

constexpr OptionRow kBlockOption = {.name = "block",
                                    .type = ValueType::kSize,
                                    .min = 4096,
                                    .max = uint64_t{16} << 20};

// The value of an option, or `otherwise` where it is not given.
std::string_view TextOf(const ConfigEntry& entry, std::string_view option,
                        std::string_view otherwise) {
  const ConfigOption* found = entry.Find(option);
  return found == nullptr ? otherwise : std::string_view(found->value.text);
}

uint64_t NumberOf(const ConfigEntry& entry, std::string_view option,
                  uint64_t otherwise) {
  const ConfigOption* found = entry.Find(option);
  return found == nullptr ? otherwise : found->value.number;
}

// --- compress

constexpr std::string_view kCompressAlgorithms[] = {"zlib", "zstd"};
constexpr OptionRow kCompressOptions[] = {
    {.name = "alg", .type = ValueType::kChoice, .words = kCompressAlgorithms},
    {.name = "level", .type = ValueType::kCount, .min = 1, .max = 19},
    kBlockOption,
};

Result<std::unique_ptr<OutputFilter>> MakeCompressFilter(
    const ConfigEntry& entry, std::unique_ptr<OutputFilter> next) {
  CompressOptions options;
  const std::string_view name = TextOf(entry, "alg", "zlib");
  if (name == "zstd") options.algorithm = CompressAlgorithm::kZstd;
  options.level = static_cast<int>(NumberOf(entry, "level", 0));
  if (options.level > MaxCompressLevel(options.algorithm)) {
    return Status::Invalid("compress: level " + std::to_string(options.level) +
                           " is beyond " + std::string(name) + "'s highest, " +
                           std::to_string(MaxCompressLevel(options.algorithm)));
  }
  options.block_bytes = NumberOf(entry, "block", 0);
  return MakeCompress(options, std::move(next));
}

std::string CompressParameters(const ConfigEntry& entry) {
  return "alg=" + std::string(TextOf(entry, "alg", "zlib"));
}

Result<std::unique_ptr<StageDecoder>> MakeCompressInverse(const ChainStage&) {
  return MakeCompressDecoder();
}

// --- The table

constexpr OutputFilterRow kOutputFilters[] = {
    {.entry = {.name = "compress",
               .role = EntryRole::kFilter,
               .options = kCompressOptions},
     .help = "makes blocks smaller, each by itself: zlib or zstd",
     .make = &MakeCompressFilter,
     .parameters = &CompressParameters,
     .make_decoder = &MakeCompressInverse},
};

}  // namespace

std::span<const OutputFilterRow> OutputFilters() { return kOutputFilters; }

const OutputFilterRow* FindOutputFilter(std::string_view name) {
  for (const OutputFilterRow& row : kOutputFilters) {
    if (row.entry.name == name) return &row;
  }
  return nullptr;
}

}  // namespace tracefs
