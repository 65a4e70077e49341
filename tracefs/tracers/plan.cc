#include "tracefs/tracers/plan.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "drivers/assembly/table.h"
#include "drivers/output/table.h"
#include "filters/output/chain.h"
#include "filters/output/table.h"
#include "tracefs/base/join.h"
#include "tracefs/base/text_cursor.h"
#include "tracefs/pipeline/pipeline.h"
#include "tracefs/tracers/parts.h"
#include "tracefs/tracers/plan_outputs.h"
#include "tracefs/tracers/plan_rules.h"
#include "tracefs/tracers/trigger_tap.h"

namespace tracefs {
namespace {

std::string DriversText(const std::vector<ConfigEntry>& assembly) {
  std::string text;
  if (std::all_of(assembly.begin(), assembly.end(), [](const ConfigEntry& e) {
        return e.role == EntryRole::kRule;
      })) {
    text = kDefaultAssembly;
  }
  for (const ConfigEntry& entry : assembly) {
    AppendWord(entry.name, "; ", &text);
    if (entry.value.type == ValueType::kBlock) {
      text += " = {" + entry.value.text + "}";
    }
    if (entry.role == EntryRole::kRule) text += ' ' + entry.value.text;
    if (entry.value.flags.empty()) continue;
    text += " = {";
    const char* separator = " ";
    for (const ConfigWord& flag : entry.value.flags) {
      text += separator + flag.text;
      separator = " | ";
    }
    text += " }";
  }
  return text;
}

Status AddAssembly(const TracerConfig& config, std::string_view file,
                   TracerParts* parts) {
  size_t counting = 0;
  for (const ConfigEntry& entry : config.assembly) {
    if (entry.role == EntryRole::kRule) continue;
    Result<std::unique_ptr<AssemblyDriver>> driver =
        FindAssemblyDriver(entry.name)->make(entry, file);
    if (!driver.ok()) return driver.status();
    if (const auto counter = (*driver)->counter()) {
      parts->header.Set("aggregate." + std::to_string(++counting),
                        counter->Keys());
    }
    parts->assembly.push_back(std::move(*driver));
  }
  if (counting != 0) parts->header.Set("aggregate.copies", "both files");
  if (parts->assembly.empty()) {
    parts->assembly.push_back(MakeDefaultAssembly());
  }
  return Status::Ok();
}

// Looks for a trigger in what the tracer records.
Status AddTrigger(const Config& file, const ConfigOption& trigger,
                  const NameService& users, NameTable& names,
                  TracerPlan* plan) {
  auto& assembly = plan->parts.assembly;
  const bool any = std::any_of(
      assembly.begin(), assembly.end(),
      [](const auto& driver) { return driver->counter() == nullptr; });
  if (!any) {
    return ErrorAt(file.file_name, trigger.position,
                   "a trigger looks at what is recorded, and this tracer only "
                   "counts; add the driver " +
                       std::string(kDefaultAssemblyDriver));
  }
  // Its text may hold escapes: columns are those within the trigger.
  Result<Filter> when =
      Filter::Compile(trigger.value.text, {.file = "trigger"}, users, names);
  if (!when.ok()) {
    return ErrorAt(file.file_name, trigger.position, when.status().message());
  }
  for (const std::string& warning : when->warnings()) {
    plan->warnings.push_back(
        ErrorAt(file.file_name, trigger.position, warning).message());
  }
  plan->flight = std::make_shared<FlightControl>();
  plan->trigger = *std::move(when);
  assembly.push_back(
      std::make_shared<TriggerTap>(*plan->trigger, plan->flight, assembly));
  return Status::Ok();
}

// All but its output.
Result<TracerPlan> PlanTracer(const Config& file, const TracerConfig& config,
                              uint32_t id, const NameService& users,
                              NameTable& names) {
  if (Status s = CheckOutput(file, config); !s.ok()) return s;
  Result<Filter> filter = Filter::Compile(
      config.filter,
      {.file = file.file_name, .position = config.filter_position}, users,
      names);
  if (!filter.ok()) return filter.status();
  Result<TracerParts> parts =
      BeginParts({.name = config.name,
                  .drivers = DriversText(config.assembly),
                  .output_chain = ChainText(config.output)},
                 *filter);
  if (!parts.ok()) return parts.status();
  SetId(id, &*parts);
  parts->header.Set("config.text", ToText(config));
  if (Status s = AddAssembly(config, file.file_name, &*parts); !s.ok()) {
    return s;
  }
  TracerPlan plan;
  plan.parts = *std::move(parts);
  plan.filter_place = PlaceText(file, config.filter_position);
  plan.warnings = filter->warnings();
  plan.filter = *std::move(filter);
  if (Status s = PlanKeeping(file, config, users, names, &plan); !s.ok()) {
    return s;
  }
  const ConfigEntry& driver = config.output.back();
  if (const ConfigOption* trigger =
          driver.Find(FindOutputDriver(driver.name)->trigger_option)) {
    if (Status s = AddTrigger(file, *trigger, users, names, &plan); !s.ok()) {
      return s;
    }
  }
  return plan;
}

// All tracers, but for their outputs.
Result<std::vector<TracerPlan>> PlanWithoutOutputs(const Config& config,
                                                   NameTable& names,
                                                   const NameService& users,
                                                   uint32_t first_id,
                                                   RuleTargets targets) {
  std::vector<TracerPlan> plans;
  for (const TracerConfig& tracer : config.tracers) {
    const auto id = static_cast<uint32_t>(first_id + plans.size());
    Result<TracerPlan> plan = PlanTracer(config, tracer, id, users, names);
    if (!plan.ok()) return plan.status();
    if (plan->keep && std::ranges::any_of(plans, [](const TracerPlan& other) {
          return other.keep.has_value();
        })) {
      return ErrorAt(config.file_name, tracer.position,
                     "one tracer of a mount keeps: another has STR_KEEP");
    }
    plans.push_back(std::move(*plan));
  }
  if (Status s = PlanRules(config, first_id, targets, users, names, &plans);
      !s.ok()) {
    return s;
  }
  static_assert(kMaxConfigTracers <= Pipeline::kMaxTracers);
  if (plans.size() > Pipeline::kMaxTracers) {
    return ErrorAt(config.file_name, config.tracers.back().position,
                   "these tracers and those that feed their rules are " +
                       std::to_string(plans.size()) + ", and at most " +
                       std::to_string(Pipeline::kMaxTracers) +
                       " run at a time; put rules into fewer tracers");
  }
  return plans;
}

}  // namespace

ConfigSchema FullSchema() {
  static const std::vector<EntryRow> assembly = [] {
    std::vector<EntryRow> rows;
    for (const AssemblyDriverRow& row : AssemblyDrivers()) {
      rows.push_back(row.entry);
    }
    rows.push_back({.name = "when",
                    .role = EntryRole::kRule,
                    .value = {.type = ValueType::kRest}});
    return rows;
  }();
  static const std::vector<EntryRow> output = [] {
    std::vector<EntryRow> rows;
    for (const OutputFilterRow& row : OutputFilters()) {
      rows.push_back(row.entry);
    }
    for (const OutputDriverRow& row : OutputDrivers()) {
      rows.push_back(row.entry);
    }
    return rows;
  }();
  return {assembly, output};
}

Result<std::vector<TracerPlan>> PlanTracers(const Config& config,
                                            NameTable& names,
                                            TracerPlanOptions options) {
  // Every filter first, every output after: a mistake in the last tracer must
  // not leave the files of the others behind.
  Result<std::vector<TracerPlan>> plans = PlanWithoutOutputs(
      config, names, *options.users, options.first_id, options.targets);
  if (!plans.ok()) return plans.status();
  if (Status s = MakeOutputs(config, options, &*plans); !s.ok()) return s;
  return plans;
}

Result<std::vector<Wish>> WishedFiles(const Config& config,
                                      const NameService& users,
                                      NameTable& names, RuleTargets targets) {
  const Result<std::vector<TracerPlan>> plans =
      PlanWithoutOutputs(config, names, users, /*first_id=*/1, targets);
  if (!plans.ok()) return plans.status();
  return WishesOf(config);
}

}  // namespace tracefs
