// RuleActions: what a mount does when a rule of one of its tracers fires.
#pragma once

#include <string>
#include <vector>

#include "tracefs/rules/rule_runner.h"
#include "tracefs/tracers/registry.h"

namespace tracefs {

// Threads: any.
class RuleActions final : public AlarmHandler {
 public:
  // Both outlive it.
  RuleActions(TracerRegistry& tracers, const TracedMount& mount)
      : tracers_(tracers), mount_(mount) {}

  void Explain(Alarm* alarm) override;
  // Also writes the alarm, and what became of the actions, into the trace.
  std::vector<Status> OnAlarm(uint32_t tracer, const Rule& rule,
                              const Alarm& alarm) override;
  void OnTick() override;
  std::vector<HoldOver> HoldsOver(uint32_t tracer) override;
  uint32_t ParentOf(uint32_t pid) override;

 private:
  Status Act(uint32_t by, const RuleAction& action);
  std::string Hold(uint32_t tracer, const Rule& rule, const RuleAction& action,
                   const Alarm& alarm, Status* outcome);

  TracerRegistry& tracers_;
  const TracedMount& mount_;
};

}  // namespace tracefs
