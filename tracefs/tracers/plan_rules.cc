#include "tracefs/tracers/plan_rules.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "drivers/output/table.h"
#include "tracefs/base/join.h"
#include "tracefs/base/spelling.h"
#include "tracefs/base/units.h"
#include "tracefs/tracers/parts.h"
#include "tracefs/tracers/plan_outputs.h"
#include "tracefs/tracers/rule_tap.h"

namespace tracefs {
namespace {

// "'flight'"
std::string FlightRecorders() {
  std::string names;
  for (const OutputDriverRow& row : OutputDrivers()) {
    if (row.trigger_option.empty()) continue;
    AppendWord(Quoted(row.entry.name), " or ", &names);
  }
  return names;
}

// With the id of each.
Result<std::vector<FileTracer>> TracersOf(
    const Config& file, uint32_t first_id,
    const std::vector<FileTracer>* among) {
  std::vector<FileTracer> tracers;
  if (among != nullptr) {
    tracers = *among;
  } else {
    tracers.resize(file.tracers.size());
  }
  size_t planned = 0;
  for (FileTracer& tracer : tracers) {
    if (tracer.id != 0) continue;
    if (planned == file.tracers.size()) break;
    tracer = FileTracerOf(file.tracers[planned],
                          first_id + static_cast<uint32_t>(planned));
    ++planned;
  }
  if (planned != file.tracers.size() ||
      std::ranges::any_of(tracers, [](const auto& t) { return t.id == 0; })) {
    return Status::Invalid(file.file_name +
                           ": 'among' has another number of new tracers");
  }
  return tracers;
}

// The rules in the config of tracer `number` (from 0) of `file`.
Result<std::vector<Rule>> RulesOf(const Config& file, size_t number,
                                  std::span<const FileTracer> tracers,
                                  const std::vector<uint32_t>* known,
                                  const NameService& users, NameTable& names) {
  std::vector<Rule> rules;
  for (const ConfigEntry& entry : file.tracers[number].assembly) {
    if (entry.role != EntryRole::kRule) continue;
    Result<Rule> rule =
        ParseRule(entry.value.text,
                  {.file = file.file_name, .position = entry.value.position},
                  users, names);
    if (!rule.ok()) return rule.status();
    rules.push_back(std::move(*rule));
  }
  if (known != nullptr) {
    if (SetTargets(rules, *known)) return rules;
    return Status::Invalid(file.file_name +
                           ": its rules name another number of tracers");
  }
  for (const Rule& rule : rules) {
    for (const RuleAction& action : rule.actions) {
      if (!action.names_tracer()) continue;
      const Result<uint32_t> id = TargetOf(action, tracers);
      if (!id.ok()) {
        return ErrorAt(file.file_name, action.position, id.status().message());
      }
      action.target->store(*id);
    }
  }
  return rules;
}

// What feeds the rules of a tracer.
Result<TracerPlan> PlanFeed(std::vector<Rule> rules, const TracerPlan& host,
                            const NameService& users, NameTable& names) {
  Result<Filter> filter = FilterOf(rules, users, names);
  if (!filter.ok()) return filter.status();
  Result<TracerParts> parts =
      BeginOwnParts(TracerKind::kRules, "rules", *filter);
  if (!parts.ok()) return parts.status();
  parts->assembly = {
      std::make_shared<RuleTap>(rules, std::move(parts->assembly.front()))};
  TracerPlan plan;
  plan.parts = *std::move(parts);
  plan.filter = *std::move(filter);
  plan.filter_place = host.filter_place;
  plan.rules_of = host.parts.id;
  const auto warn = [&plan](const Filter& warned) {
    plan.warnings.insert(plan.warnings.end(), warned.warnings().begin(),
                         warned.warnings().end());
  };
  for (const Rule& rule : rules) {
    warn(rule.what);
    for (const RuleAction& action : rule.actions) {
      if (action.filter) warn(*action.filter);
    }
  }
  plan.rules = std::move(rules);
  return plan;
}

}  // namespace

FileTracer FileTracerOf(const TracerConfig& config, uint32_t id) {
  const ConfigEntry& driver = config.output.back();
  const OutputDriverRow* const row = FindOutputDriver(driver.name);
  return {.name = config.name,
          .output = driver.name,
          .flight = row != nullptr && !row->trigger_option.empty(),
          .fails_closed = AsksToFail(driver),
          .id = id};
}

Result<uint32_t> TargetOf(const RuleAction& action,
                          std::span<const FileTracer> tracers) {
  const FileTracer* found = nullptr;
  if (const auto given = ParseUnsigned(action.tracer);
      given && *given >= 1 && *given <= tracers.size()) {
    found = &tracers[*given - 1];
  }
  std::vector<std::string_view> known;
  for (const FileTracer& tracer : tracers) {
    known.push_back(tracer.name);
    if (tracer.name == action.tracer) found = &tracer;
  }
  if (found == nullptr) {
    return Status::Invalid("there is no tracer " + Quoted(action.tracer) +
                           " in this file" + DidYouMean(action.tracer, known));
  }
  if (action.kind == RuleAction::Kind::kSnapshot && !found->flight) {
    return Status::Invalid("tracer " + Quoted(action.tracer) +
                           " has the output " + Quoted(found->output) +
                           "; only a flight recorder (output " +
                           FlightRecorders() + ") writes snapshots");
  }
  const bool steers = action.kind == RuleAction::Kind::kSuspend ||
                      action.kind == RuleAction::Kind::kRaise;
  if (steers && found->fails_closed) {
    return Status::Invalid("tracer " + Quoted(action.tracer) +
                           " has when_full = fail: no rule stops it or gives "
                           "it another filter");
  }
  return found->id;
}

Status PlanRules(const Config& file, uint32_t first_id, RuleTargets targets,
                 const NameService& users, NameTable& names,
                 std::vector<TracerPlan>* plans) {
  const Result<std::vector<FileTracer>> tracers =
      TracersOf(file, first_id, targets.among);
  if (!tracers.ok()) return tracers.status();
  for (size_t i = 0; i < file.tracers.size(); ++i) {
    Result<std::vector<Rule>> rules =
        RulesOf(file, i, *tracers, targets.known, users, names);
    if (!rules.ok()) return rules.status();
    if (rules->empty()) continue;
    Result<TracerPlan> plan =
        PlanFeed(*std::move(rules), (*plans)[i], users, names);
    if (!plan.ok()) return plan.status();
    plans->push_back(*std::move(plan));
  }
  return Status::Ok();
}

}  // namespace tracefs
