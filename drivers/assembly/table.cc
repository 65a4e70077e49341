#include "drivers/assembly/table.h"

#include <vector>

#include "drivers/assembly/aggregate.h"
#include "drivers/assembly/stream.h"

namespace tracefs {
namespace {

std::span<const std::string_view> StreamFlagNames() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const StreamFlagInfo& flag : StreamFlags()) all.push_back(flag.name);
    return all;
  }();
  return names;
}

Result<std::unique_ptr<AssemblyDriver>> MakeStreamFrom(
    const ConfigEntry& entry, std::string_view /*file*/) {
  uint64_t bits = 0;
  for (const ConfigWord& word : entry.value.flags) {
    bits |= StreamFlagBits(word.text);
  }
  return MakeStream(bits);
}

Result<std::unique_ptr<AssemblyDriver>> MakeAggregateFrom(
    const ConfigEntry& entry, std::string_view file) {
  Result<AggregateSpec> spec =
      ParseAggregateSpec(entry.value.text, file, entry.value.position);
  if (!spec.ok()) return spec.status();
  return MakeAggregate(*std::move(spec));
}

}  // namespace

constexpr std::string_view kWhenNotKept[] = {"go_on", "fail"};

// Of STR_KEEP (tracefs/tracers/keep_plan.h).
constexpr OptionRow kStreamOptions[] = {
    {.name = "keep_in", .type = ValueType::kText},
    {.name = "keep_max", .type = ValueType::kSize, .min = 1 << 20},
    {.name = "keep", .type = ValueType::kBlock},
    {.name = "when_not_kept",
     .type = ValueType::kChoice,
     .words = kWhenNotKept},
};

std::span<const AssemblyDriverRow> AssemblyDrivers() {
  static const AssemblyDriverRow rows[] = {
      {{.name = "stream",
        .role = EntryRole::kAssembly,
        .value = {.type = ValueType::kFlags,
                  .required = true,
                  .words = StreamFlagNames()},
        .options = kStreamOptions},
       "one message for each operation",
       &MakeStreamFrom},
      {{.name = "aggregate",
        .role = EntryRole::kAssembly,
        .value = {.type = ValueType::kBlock, .required = true}},
       "counts and histograms by what operations have in common",
       &MakeAggregateFrom,
       /*only_counts=*/true},
  };
  return rows;
}

const AssemblyDriverRow* FindAssemblyDriver(std::string_view name) {
  for (const AssemblyDriverRow& row : AssemblyDrivers()) {
    if (row.entry.name == name) return &row;
  }
  return nullptr;
}

std::unique_ptr<AssemblyDriver> MakeDefaultAssembly() {
  return MakeStream(StreamFlagBits("STR_ALL"));
}

}  // namespace tracefs
