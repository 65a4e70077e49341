#include "tracefs/tracers/plan_facts.h"

#include <algorithm>

namespace tracefs {
namespace {

template <typename Is>
bool AnyLock(Is is) {
  const std::vector<Op> locks = OpsOf(OpFamily::kLock);
  return std::any_of(locks.begin(), locks.end(), is);
}

// Whether the filter or a driver of some tracer does, for some operation.
template <typename Does>
bool AnyNeeds(std::span<const TracerPlan> plans, Does does) {
  for (const TracerPlan& plan : plans) {
    for (size_t i = 0; i < kOpCount; ++i) {
      const auto op = static_cast<Op>(i);
      if (does(plan.parts.filter->Needs(op))) return true;
      for (const auto& driver : plan.parts.assembly) {
        if (does(driver->Needs(op))) return true;
      }
    }
  }
  return false;
}

}  // namespace

bool NeedCallers(std::span<const TracerPlan> plans) {
  return AnyNeeds(plans, [](const auto& needs) { return needs.caller; });
}

bool NeedCalls(std::span<const TracerPlan> plans) {
  return AnyNeeds(plans, [](const auto& needs) { return needs.syscall; });
}

bool NeedDetails(std::span<const TracerPlan> plans) {
  return AnyNeeds(plans, [](const auto& needs) { return needs.details; });
}

bool NeedAncestors(std::span<const TracerPlan> plans) {
  return AnyNeeds(plans, [](const auto& needs) { return needs.ancestors; });
}

bool FailsClosed(std::span<const TracerPlan> plans) {
  return std::any_of(plans.begin(), plans.end(), [](const TracerPlan& plan) {
    return plan.parts.when_full == LossPolicy::kFail;
  });
}

bool NeedProcesses(std::span<const TracerPlan> plans) {
  return std::any_of(plans.begin(), plans.end(), [](const TracerPlan& plan) {
    return std::any_of(
        plan.parts.assembly.begin(), plan.parts.assembly.end(),
        [](const auto& driver) { return driver->process_needs().records; });
  });
}

bool MayKeep(const TracerPlan& plan, Op op) {
  return plan.parts.filter->Needs(op).constant != Verdict::kDrop;
}

bool MayKeepLocks(const TracerPlan& plan) {
  return AnyLock([&](Op op) { return MayKeep(plan, op); });
}

bool NamesLocks(std::span<const TracerPlan> plans) {
  const auto named_by = [&](const Filter& filter) {
    return AnyLock([&](Op op) {
      return filter.Names(op) && filter.Needs(op).constant != Verdict::kDrop;
    });
  };
  for (const TracerPlan& plan : plans) {
    if (plan.filter && named_by(*plan.filter)) return true;
    for (const Rule& rule : plan.rules) {
      for (const RuleAction& action : rule.actions) {
        if (action.filter && named_by(*action.filter)) return true;
      }
    }
  }
  return false;
}

}  // namespace tracefs
