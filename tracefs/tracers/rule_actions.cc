#include "tracefs/tracers/rule_actions.h"

#include <string>

#include "tracefs/base/clock.h"

namespace tracefs {

std::vector<Status> RuleActions::OnAlarm(uint32_t tracer, const Rule& rule,
                                         const Alarm& alarm) {
  std::vector<Status> outcomes;
  std::vector<std::string> texts;  // "snapshot 2: done"
  for (const RuleAction& action : rule.actions) {
    const Status& outcome = outcomes.emplace_back(Act(tracer, action));
    texts.push_back(std::string(RuleActionName(action.kind)) + ' ' +
                    std::to_string(action.tracer_id) + ": " +
                    (outcome.ok() ? "done" : outcome.message()));
  }
  const format::AlarmRecord record = {
      .rule = static_cast<uint32_t>(alarm.rule + 1),
      .title = rule.title,
      .key = RuleKeyName(rule.key),
      .key_pid = alarm.key_pid,
      .other = alarm.other,
      .count = alarm.count,
      .limit = rule.limit,
      .window_ns = rule.window_ns,
      .windows = rule.windows,
      .op = alarm.op,
      .actions = {texts.begin(), texts.end()}};
  static_cast<void>(mount_.pipeline.Tell(tracer, record, alarm.values));
  return outcomes;
}

Status RuleActions::Act(uint32_t by, const RuleAction& action) {
  switch (action.kind) {
    case RuleAction::Kind::kSnapshot:
      return mount_.snapshots.Take(action.tracer_id, "rule").status();
    case RuleAction::Kind::kRaise:
      return tracers_.Raise(by, action);
    case RuleAction::Kind::kResume:
      return tracers_.Resume(action.tracer_id);
    case RuleAction::Kind::kSuspend:
      return tracers_.Suspend(action.tracer_id);
  }
  return Status::Ok();
}

void RuleActions::OnTick() {
  const uint64_t now = MonotonicNs();
  tracers_.EndRaises([now](const TracerRegistry::Entry& entry) {
    return entry.raised_until_ns <= now;
  });
}

uint32_t RuleActions::ParentOf(uint32_t pid) {
  return mount_.processes.ParentOf(pid, MonotonicNs());
}

}  // namespace tracefs
