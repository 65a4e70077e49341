#include "config/shared_options.h"
#include "filters/output/rows.h"
#include "filters/output/throttle.h"

namespace tracefs {
namespace {

constexpr OptionRow kOptions[] = {
    {.name = "ops", .type = ValueType::kText},
    {.name = "bytes", .type = ValueType::kText},
    kBlockOrDropOption,
    kDeadlineOption,
    kBlockOption,
};

Status TakeRate(const ConfigEntry& entry, std::string_view option,
                double* rate) {
  const ConfigOption* found = entry.Find(option);
  if (found == nullptr) return Status::Ok();
  const std::optional<double> parsed = ParseRate(found->value.text);
  if (!parsed) {
    return Status::Invalid("throttle: " + std::string(option) +
                           " is a rate as 1000/s, 10M/s or 60/m, not " +
                           Quoted(found->value.text));
  }
  *rate = *parsed;
  return Status::Ok();
}

Result<ThrottleOptions> OptionsOf(const ConfigEntry& entry) {
  ThrottleOptions options;
  if (Status s = TakeRate(entry, "ops", &options.ops_per_second); !s.ok()) {
    return s;
  }
  if (Status s = TakeRate(entry, "bytes", &options.bytes_per_second); !s.ok()) {
    return s;
  }
  if (options.ops_per_second == 0 && options.bytes_per_second == 0) {
    return Status::Invalid("throttle: needs ops = N/s or bytes = N/s");
  }
  if (Status s = CheckWhenFull(entry); !s.ok()) return s;
  options.when_full = WhenFullOf(entry);
  options.block_bytes = entry.Number("block");
  return options;
}

Status Check(const ConfigEntry& entry) { return OptionsOf(entry).status(); }

Result<std::unique_ptr<OutputFilter>> Make(const ConfigEntry& entry,
                                           std::unique_ptr<OutputFilter> next,
                                           OutputFilterInputs) {
  return MakeThrottle(*OptionsOf(entry), std::move(next));
}

}  // namespace

OutputFilterRow ThrottleRow() {
  return {.entry = {.name = "throttle",
                    .role = EntryRole::kFilter,
                    .options = kOptions},
          .help = "bounds operations or bytes per second",
          .make = &Make,
          .check = &Check};
}

}  // namespace tracefs
