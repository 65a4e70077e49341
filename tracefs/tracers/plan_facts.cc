#include "tracefs/tracers/plan_facts.h"

#include <algorithm>

namespace tracefs {
namespace {

template <typename Is>
bool AnyLock(Is is) {
  const std::vector<Op> locks = OpsOf(OpFamily::kLock);
  return std::any_of(locks.begin(), locks.end(), is);
}

}  // namespace

bool FailsClosed(std::span<const TracerPlan> plans) {
  return std::any_of(plans.begin(), plans.end(), [](const TracerPlan& plan) {
    return plan.parts.when_full == LossPolicy::kFail;
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
    // It sees what is recorded.
    if (plan.trigger && MayKeepLocks(plan) && named_by(*plan.trigger)) {
      return true;
    }
    for (const Rule& rule : plan.rules) {
      for (const RuleAction& action : rule.actions) {
        if (action.filter && named_by(*action.filter)) return true;
      }
    }
  }
  return false;
}

}  // namespace tracefs
