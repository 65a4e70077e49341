#include "tracefs/tracers/needs.h"

#include "tracefs/rules/rule_engine.h"

namespace tracefs {
namespace {

// Each in the order of Need.
constexpr const char* kAskedFor[] = {
    "their callers", "the ancestors of callers", "details of callers",
    "system calls", "process records"};
static_assert(std::size(kAskedFor) == kNeedCount);

// `judge`: a filter, or a driver.
template <typename Judge>
void AddNeeds(const Judge& judge, NeedSet* needs) {
  for (size_t i = 0; i < kOpCount; ++i) {
    const auto of_op = judge.Needs(static_cast<Op>(i));
    needs->Add(Need::kCallers, of_op.caller);
    needs->Add(Need::kAncestors, of_op.ancestors);
    needs->Add(Need::kDetails, of_op.details);
    needs->Add(Need::kCalls, of_op.syscall);
  }
}

}  // namespace

NeedSet NeedsOf(const Filter& filter) {
  NeedSet needs;
  AddNeeds(filter, &needs);
  return needs;
}

NeedSet NeedsOf(const TracerPlan& plan) {
  NeedSet needs;
  AddNeeds(*plan.parts.filter, &needs);
  for (const auto& driver : plan.parts.assembly) {
    AddNeeds(*driver, &needs);
    needs.Add(Need::kProcesses, driver->process_needs().records);
  }
  needs.Add(Need::kAncestors, RuleEngine::CountsTrees(plan.rules));
  // Alarms say what the process was: nobody waits for that.
  needs.Add(Need::kDetails, !plan.rules.empty());
  return needs;
}

Status NeedLeases::Take(const NeedSet& wanted, const std::string& who,
                        NeedSet* held) const {
  NeedSet taken;
  for (size_t i = 0; i < kNeedCount; ++i) {
    const auto need = static_cast<Need>(i);
    if (!wanted.Has(need) || held->Has(need)) continue;
    if (Status s = Start(need); !s.ok()) {
      GiveBack(&taken);
      return s.Prefixed(who + " asks for " + kAskedFor[i]);
    }
    taken.Add(need);
  }
  for (size_t i = 0; i < kNeedCount; ++i) {
    held->Add(static_cast<Need>(i), taken.Has(static_cast<Need>(i)));
  }
  return Status::Ok();
}

void NeedLeases::GiveBack(NeedSet* held) const {
  for (size_t i = 0; i < kNeedCount; ++i) {
    const auto need = static_cast<Need>(i);
    if (held->Has(need)) Stop(need);
    held->Remove(need);
  }
}

Status NeedLeases::Start(Need need) const {
  switch (need) {
    case Need::kCallers:
      processes_.Start();
      return Status::Ok();
    case Need::kAncestors:
      processes_.KeepParents(true);
      return Status::Ok();
    case Need::kDetails:
      return processes_.KeepDetails(true);
    case Need::kCalls:
      return calls_.Start();
    case Need::kProcesses:
      return watch_ != nullptr ? watch_->Start() : Status::Ok();
  }
  return Status::Ok();
}

void NeedLeases::Stop(Need need) const {
  switch (need) {
    case Need::kCallers:
      return processes_.Stop();
    case Need::kAncestors:
      return processes_.KeepParents(false);
    case Need::kDetails:
      return static_cast<void>(processes_.KeepDetails(false));
    case Need::kCalls:
      return calls_.Stop();
    case Need::kProcesses:
      if (watch_ != nullptr) watch_->Stop();
  }
}

}  // namespace tracefs
