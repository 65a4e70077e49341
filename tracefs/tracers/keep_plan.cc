#include "tracefs/tracers/keep_plan.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "drivers/assembly/stream.h"
#include "tracefs/base/state_folder.h"
#include "tracefs/base/text_cursor.h"
#include "tracefs/event/verbosity.h"
#include "tracefs/format/frame.h"
#include "tracefs/tracers/plan.h"

namespace tracefs {
namespace {

constexpr uint64_t kMostKept = uint64_t{1} << 30;

bool HasFlag(const ConfigEntry& entry) {
  return std::ranges::any_of(entry.value.flags, [](const ConfigWord& flag) {
    return (StreamFlagBits(flag.text) & kStrKeep) != 0;
  });
}

// Has the mount find out in time what the filter asks for.
class KeepTap final : public AssemblyDriver {
 public:
  explicit KeepTap(Filter filter) : filter_(std::move(filter)) {}

  AssemblyNeeds Needs(Op op) const override {
    if (!DestroysContents(op)) return {};
    AssemblyNeeds mine;
    mine.AddThoseOf(filter_.Needs(op));
    return mine;
  }
  bool Assemble(Event& /*event*/, BlockBuilder& /*block*/) const override {
    return true;
  }

 private:
  const Filter filter_;
};

}  // namespace

bool AsksToKeep(const TracerConfig& config) {
  return std::ranges::any_of(config.assembly, HasFlag);
}

Status PlanKeeping(const Config& file, const TracerConfig& config,
                   const NameService& users, NameTable& names,
                   TracerPlan* plan) {
  for (const ConfigEntry& entry : config.assembly) {
    if (!HasFlag(entry)) {
      for (const ConfigOption& option : entry.options) {
        return ErrorAt(file.file_name, option.position,
                       option.name + " takes the flag STR_KEEP");
      }
      continue;
    }
    if (plan->keep) {
      return ErrorAt(file.file_name, entry.position,
                     "a tracer keeps once: another driver of it has STR_KEEP");
    }
    KeepPlan& keep = plan->keep.emplace();
    keep.folder = entry.Text("keep_in");
    if (keep.folder.empty()) {
      const std::string state = StateFolder();
      if (state.empty()) {
        return ErrorAt(file.file_name, entry.position,
                       "STR_KEEP takes keep_in: there is no home");
      }
      keep.folder = state + "/kept";
    }
    if (!keep.folder.starts_with('/')) {
      return ErrorAt(file.file_name, entry.Find("keep_in")->value.position,
                     "keep_in takes an absolute path");
    }
    keep.name = format::SerialText(plan->parts.serial);
    keep.max_bytes = entry.Number("keep_max", kMostKept);
    keep.must = entry.Text("when_not_kept", "go_on") == "fail";
    format::TraceHeader& header = plan->parts.header;
    header.Set("keep.folder", keep.folder + "/" + keep.name);
    header.Set("keep.max", std::to_string(keep.max_bytes));
    const ConfigOption* const wanted = entry.Find("keep");
    if (wanted == nullptr) continue;
    Result<Filter> filter = Filter::Compile(
        wanted->value.text,
        {.file = file.file_name, .position = wanted->value.position}, users,
        names);
    if (!filter.ok()) return filter.status();
    for (const std::string& warning : filter->warnings()) {
      plan->warnings.push_back(warning);
    }
    keep.filter = *std::move(filter);
    plan->parts.assembly.push_back(std::make_shared<KeepTap>(*keep.filter));
  }
  return Status::Ok();
}

}  // namespace tracefs
