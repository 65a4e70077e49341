#include "tracefs/tracers/plan_rules.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "drivers/output/table.h"
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
    names += (names.empty() ? "" : " or ") + Quoted(row.entry.name);
  }
  return names;
}

// Finds the tracer that an action names among those of its file.
Status Resolve(const Config& file, uint32_t first_id, RuleAction* action) {
  if (action->kind == RuleAction::Kind::kHold) return Status::Ok();
  const std::vector<TracerConfig>& tracers = file.tracers;
  size_t number = tracers.size();
  if (const auto given = ParseUnsigned(action->tracer);
      given && *given >= 1 && *given <= tracers.size()) {
    number = *given - 1;
  }
  std::vector<std::string_view> known;
  for (size_t i = 0; i < tracers.size(); ++i) {
    known.push_back(tracers[i].name);
    if (tracers[i].name == action->tracer) number = i;
  }
  if (number == tracers.size()) {
    return ErrorAt(file.file_name, action->position,
                   "there is no tracer " + Quoted(action->tracer) +
                       " in this file" + DidYouMean(action->tracer, known));
  }
  if (action->kind == RuleAction::Kind::kSnapshot &&
      FindOutputDriver(tracers[number].output.back().name)
          ->trigger_option.empty()) {
    return ErrorAt(file.file_name, action->position,
                   "tracer " + Quoted(action->tracer) + " has the output " +
                       Quoted(tracers[number].output.back().name) +
                       "; only a flight recorder (output " + FlightRecorders() +
                       ") writes snapshots");
  }
  const bool steers = action->kind == RuleAction::Kind::kSuspend ||
                      action->kind == RuleAction::Kind::kRaise;
  if (steers && AsksToFail(tracers[number].output.back())) {
    return ErrorAt(file.file_name, action->position,
                   "tracer " + Quoted(action->tracer) +
                       " has when_full = fail: no rule stops it or gives it "
                       "another filter");
  }
  action->tracer_id = first_id + static_cast<uint32_t>(number);
  return Status::Ok();
}

// The rules in the config of tracer `number` (from 0) of `file`, the first
// tracer of which has the id `first_id`.
Result<std::vector<Rule>> RulesOf(const Config& file, size_t number,
                                  uint32_t first_id, const NameService& users,
                                  NameTable& names) {
  std::vector<Rule> rules;
  for (const ConfigEntry& entry : file.tracers[number].assembly) {
    if (entry.role != EntryRole::kRule) continue;
    Result<Rule> rule =
        ParseRule(entry.value.text,
                  {.file = file.file_name, .position = entry.value.position},
                  users, names);
    if (!rule.ok()) return rule.status();
    for (RuleAction& action : rule->actions) {
      if (Status s = Resolve(file, first_id, &action); !s.ok()) return s;
    }
    rules.push_back(std::move(*rule));
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

Status PlanRules(const Config& file, uint32_t first_id,
                 const NameService& users, NameTable& names,
                 std::vector<TracerPlan>* plans) {
  for (size_t i = 0; i < file.tracers.size(); ++i) {
    Result<std::vector<Rule>> rules = RulesOf(file, i, first_id, users, names);
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
