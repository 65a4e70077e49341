#include "tracefs/pipeline/op_plans.h"

namespace tracefs {
namespace {

OpPlans::OpPlan MakePlan(
    const InputFilter& input,
    std::span<const std::shared_ptr<const AssemblyDriver>> assembly, Op op) {
  OpPlans::OpPlan plan;
  const FilterNeeds filter = input.Needs(op);
  if (filter.constant == Verdict::kDrop) return plan;
  plan.always = filter.constant == Verdict::kKeep;
  for (const auto& driver : assembly) {
    const AssemblyNeeds needs = driver->Needs(op);
    plan.record |= needs.after;
    plan.before |= needs.before;
    plan.caller |= needs.caller;
    plan.syscall |= needs.syscall;
    plan.details |= needs.details;
    plan.data |= needs.data;
    plan.order |= needs.order;
    plan.keep |= needs.keep;
    plan.extents |= needs.extents;
    plan.names |= needs.names;
  }
  if (!plan.record && !plan.before) return {};
  plan.names |= filter.names;
  plan.decide_early =
      (filter.caller || filter.syscall || filter.paths) && !plan.always;
  return plan;
}

}  // namespace

OpPlans::OpPlans(
    std::unique_ptr<const InputFilter> filter,
    std::span<const std::shared_ptr<const AssemblyDriver>> assembly)
    : filter_(std::move(filter)) {
  for (size_t i = 0; i < kOpCount; ++i) {
    plans_[i] = MakePlan(*filter_, assembly, static_cast<Op>(i));
  }
}

}  // namespace tracefs
