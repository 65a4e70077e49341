#include "tracefs/tracers/trigger_tap.h"

#include <algorithm>
#include <utility>

#include "tracefs/base/clock.h"

namespace tracefs {

TriggerTap::TriggerTap(
    Filter filter, std::shared_ptr<FlightControl> control,
    std::vector<std::shared_ptr<const AssemblyDriver>> others)
    : filter_(std::move(filter)),
      control_(std::move(control)),
      others_(std::move(others)) {}

AssemblyNeeds TriggerTap::Needs(Op op) const {
  const FilterNeeds needs = filter_.Needs(op);
  AssemblyNeeds mine;
  mine.after =
      needs.constant != Verdict::kDrop &&
      std::any_of(others_.begin(), others_.end(), [op](const auto& driver) {
        const AssemblyNeeds theirs = driver->Needs(op);
        return theirs.after && !theirs.counts;
      });
  if (mine.after) mine.AddThoseOf(needs);
  return mine;
}

bool TriggerTap::Assemble(Event& event, BlockBuilder& /*block*/) const {
  if (!event.before && filter_.Keep(event)) Fire();
  return true;
}

bool TriggerTap::NamesDefined(const Event& event,
                              const BlockBuilder& /*block*/) const {
  return !filter_.Needs(event.op).before_reply();
}

void TriggerTap::Fire() const {
  const uint64_t now = MonotonicNs();
  uint64_t last = last_ns_.load(std::memory_order_relaxed);
  if (last != 0 && now - last < control_->every_ns) return;
  if (!last_ns_.compare_exchange_strong(last, now)) return;
  if (control_->on_trigger) control_->on_trigger();
}

}  // namespace tracefs
