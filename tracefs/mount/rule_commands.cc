// The commands about rules and what they did: rules, held, release.
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tracefs/base/common_clock.h"
#include "tracefs/base/text.h"
#include "tracefs/mount/answers.h"
#include "tracefs/mount/commands.h"
#include "tracefs/mount/config_difference.h"
#include "tracefs/tracers/plan_rules.h"

namespace tracefs {
namespace {

// Alarms of each tracer that are listed, unless a client asks for more.
constexpr size_t kAlarmsToTell = 16;

}  // namespace

ControlAnswer MountCommands::Rules(ControlRequest& request) {
  size_t most = kAlarmsToTell;
  if (request.numbers.contains("last")) {
    const Result<uint32_t> last = request.Number("last");
    if (!last.ok()) return last.status();
    most = *last;
  }
  const ClockPair clock = CommonClockPair();
  const TracerRegistry::Entries entries = mount_.tracers.All();
  Json rules = Json::array();
  Json raised = Json::array();
  for (const auto& [id, entry] : entries) {
    if (entry.raised_until_ns != 0) {
      raised.push_back({{"tracer", id},
                        {"by", entry.raised_by},
                        {"until", clock.ToReal(entry.raised_until_ns)}});
    }
    if (entry.rules == nullptr) continue;
    const auto host = entries.find(entry.rules->tracer());
    const bool suspended = host != entries.end() && host->second.suspended;
    AddRulesJson(*entry.rules, suspended, most, &rules);
  }
  return Answer({{"mount", mount_.traced.header.Get("mount.point")},
                 {"rules", std::move(rules)},
                 {"raised", std::move(raised)}});
}

// These tracers are a file from now on, in this order: their rules name each
// other.
ControlAnswer MountCommands::Bind(ControlRequest& request) {
  const Result<std::string> ids = request.Text("tracers");
  if (!ids.ok()) return ids.status();
  const TracerRegistry::Entries entries = mount_.tracers.All();
  const Result<std::vector<FileTracer>> tracers = TracersAmong(*ids, entries);
  if (!tracers.ok()) return tracers.status();
  // All of them, or none.
  std::vector<std::pair<uint32_t, std::vector<uint32_t>>> bound;
  for (const FileTracer& tracer : *tracers) {
    if (tracer.id == 0) return Status::Invalid("there is no tracer 0");
    const std::vector<Rule>* const rules = RulesOfTracer(entries, tracer.id);
    if (rules == nullptr) continue;
    std::vector<uint32_t> targets;
    for (const Rule& rule : *rules) {
      for (const RuleAction& action : rule.actions) {
        if (!action.names_tracer()) continue;
        const Result<uint32_t> target = TargetOf(action, *tracers);
        if (!target.ok()) {
          return target.status().Prefixed("a rule of tracer " +
                                          std::to_string(tracer.id));
        }
        targets.push_back(*target);
      }
    }
    if (targets != TargetsOf(*rules)) bound.emplace_back(tracer.id, targets);
  }
  for (const auto& [id, targets] : bound) {
    const Status done = Change(
        id, [&](Order& order) { order.targets = targets; },
        [&] { return mount_.tracers.Bind(id, targets); });
    if (!done.ok()) return done;
  }
  return Answer(Json::object());
}

ControlAnswer MountCommands::HeldOnes(ControlRequest& /*request*/) {
  const ClockPair clock = CommonClockPair();
  Json holds = Json::array();
  if (mount_.holds != nullptr) {
    for (const HoldLot::Held& held : mount_.holds->All()) {
      holds.push_back(HeldJson(held, clock));
    }
  }
  return Answer({{"mount", mount_.traced.header.Get("mount.point")},
                 {"holds", std::move(holds)}});
}

ControlAnswer MountCommands::Release(ControlRequest& request) {
  const Result<uint32_t> hold = request.Number("hold");
  if (!hold.ok()) return hold.status();
  const Result<std::string> how = request.Text("how");
  if (!how.ok()) return how.status();
  if (*how != "go-on" && *how != "fail" && *how != "refuse") {
    return Status::Invalid("request: how is go-on, fail or refuse, not " +
                           Quoted(*how));
  }
  if (mount_.holds == nullptr) return Status::Invalid("nobody is held");
  if (*how == "refuse") {
    if (Status s = mount_.holds->Refuse(*hold); !s.ok()) return s;
    return Answer(Json::object());
  }
  const Status done = mount_.holds->Release(
      *hold, *how == "fail" ? HoldEnd::kFail : HoldEnd::kGoOn, "tracefs-ctl");
  if (!done.ok()) return done;
  return Answer(Json::object());
}

// Who asks may end any hold: it is his word which process it is.
ControlAnswer MountCommands::Spare(ControlRequest& request) {
  const Result<uint32_t> pid = request.Number("pid");
  if (!pid.ok()) return pid.status();
  if (mount_.holds != nullptr) mount_.holds->Spare(*pid);
  return Answer(Json::object());
}

}  // namespace tracefs
