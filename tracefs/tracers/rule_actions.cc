#include "tracefs/tracers/rule_actions.h"

#include <memory>
#include <string>
#include <string_view>

#include "tracefs/base/clock.h"

namespace tracefs {

void RuleActions::Explain(Alarm* alarm) {
  if (alarm->caller.pid == 0) {
    alarm->source.not_known = {"exe", "cmdline", "ancestors"};
    return;
  }
  const uint64_t now = MonotonicNs();
  AlarmSource& source = alarm->source;
  const std::shared_ptr<const CallerDetails> details =
      mount_.processes.DetailsLater(alarm->caller, now);
  for (const Field field :
       {Field::kExe, Field::kCmdline, Field::kCgroup, Field::kTty}) {
    const std::string* const text =
        details == nullptr ? nullptr : details->Find(field);
    if (text != nullptr) {
      alarm->values.texts.emplace_back(field, *text);
    } else if (field == Field::kExe || field == Field::kCmdline) {
      source.not_known.push_back(Info(field).json_key);
    }
  }
  const bool whole = mount_.processes.ForEachAncestor(
      alarm->caller, now, &source,
      [](void* context, uint32_t pid, std::string_view comm) {
        auto& ancestors = static_cast<AlarmSource*>(context)->ancestors;
        ancestors.push_back({pid, std::string(comm)});
        return ancestors.size() < format::AlarmRecord::kMaxAncestors;
      });
  if (!whole) source.not_known.push_back("ancestors");
}

std::vector<Status> RuleActions::OnAlarm(uint32_t tracer, const Rule& rule,
                                         const Alarm& alarm) {
  std::vector<Status> outcomes;
  std::vector<std::string> texts;  // "snapshot 2: done"
  for (const RuleAction& action : rule.actions) {
    if (action.kind == RuleAction::Kind::kHold) {
      texts.push_back(
          Hold(tracer, rule, action, alarm, &outcomes.emplace_back()));
      continue;
    }
    if (alarm.quiet) continue;
    const Status& outcome = outcomes.emplace_back(Act(tracer, action));
    texts.push_back(std::string(RuleActionName(action.kind)) + ' ' +
                    std::to_string(action.tracer_id()) + ": " +
                    (outcome.ok() ? "done" : outcome.message()));
  }
  if (alarm.quiet) return outcomes;
  format::AlarmRecord record = {
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
      .actions = {texts.begin(), texts.end()},
      .paths = {alarm.paths.begin(), alarm.paths.end()},
      .not_known = alarm.source.not_known};
  for (const AlarmSource::Ancestor& ancestor : alarm.source.ancestors) {
    record.ancestors.push_back({ancestor.pid, ancestor.comm});
  }
  static_cast<void>(mount_.pipeline.Tell(tracer, record, alarm.values));
  return outcomes;
}

std::string RuleActions::Hold(uint32_t tracer, const Rule& rule,
                              const RuleAction& action, const Alarm& alarm,
                              Status* outcome) {
  Result<std::string> held =
      mount_.holds == nullptr
          ? Status::Invalid("nobody can be held in this mount")
          : mount_.holds->Begin(tracer, rule, action, alarm);
  // It may have been stopped, and what it held let go, just before.
  if (held.ok() && !tracers_.IsRunning(tracer)) mount_.holds->EndOf(tracer);
  *outcome = held.ok() ? Status() : held.status();
  return "hold " + (held.ok() ? *held : held.status().message());
}

Status RuleActions::Act(uint32_t by, const RuleAction& action) {
  switch (action.kind) {
    case RuleAction::Kind::kSnapshot:
      return mount_.snapshots.Take(action.tracer_id(), "rule").status();
    case RuleAction::Kind::kRaise:
      return tracers_.Raise(by, action);
    case RuleAction::Kind::kResume:
      return tracers_.Resume(action.tracer_id());
    case RuleAction::Kind::kSuspend:
      return tracers_.Suspend(action.tracer_id());
    case RuleAction::Kind::kHold:
      break;  // Hold
  }
  return Status::Ok();
}

void RuleActions::OnTick() {
  if (mount_.holds != nullptr) mount_.holds->Tick();
  const uint64_t now = MonotonicNs();
  tracers_.EndRaises([now](const TracerRegistry::Entry& entry) {
    return entry.raised_until_ns <= now;
  });
}

std::vector<HoldOver> RuleActions::HoldsOver(uint32_t tracer) {
  if (mount_.holds == nullptr) return {};
  return mount_.holds->TakeOver(tracer);
}

uint32_t RuleActions::ParentOf(uint32_t pid) {
  return mount_.processes.ParentOf(pid, MonotonicNs());
}

}  // namespace tracefs
