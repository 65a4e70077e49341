#include "config/shared_options.h"
#include "filters/output/async.h"
#include "filters/output/rows.h"

namespace tracefs {
namespace {

constexpr OptionRow kOptions[] = {
    {.name = "buffers", .type = ValueType::kCount, .min = 2, .max = 4096},
    kBlockOrDropOption,
    kDeadlineOption,
    kBlockOption,
};
// All buffers together.
constexpr uint64_t kMaxBytes = uint64_t{4} << 30;
constexpr uint64_t kDefaultBlock = 256 * 1024;

Result<std::unique_ptr<OutputFilter>> Make(const ConfigEntry& entry,
                                           std::unique_ptr<OutputFilter> next,
                                           OutputFilterInputs) {
  AsyncOptions options;
  options.buffers = entry.Number("buffers", options.buffers);
  options.block_bytes = entry.Number("block");
  if (options.block_bytes == 0) {
    options.block_bytes = next->PreferredBlockSize();
  }
  if (options.block_bytes == 0) options.block_bytes = kDefaultBlock;
  if (options.buffers * options.block_bytes > kMaxBytes) {
    return Status::Invalid("async: " + std::to_string(options.buffers) +
                           " buffers of " +
                           std::to_string(options.block_bytes) +
                           " bytes are more than 4 GiB; use fewer");
  }
  options.when_full = WhenFullOf(entry);
  return MakeAsync(options, std::move(next));
}

}  // namespace

OutputFilterRow AsyncRow() {
  return {.entry = {.name = "async",
                    .role = EntryRole::kFilter,
                    .options = kOptions},
          .help = "hands blocks on in a thread of its own; comes first",
          .first_only = true,
          .make = &Make,
          .check = &CheckWhenFull};
}

}  // namespace tracefs
