// TriggerTap: looks at what a flight recorder records and asks for a snapshot
// when an operation matches the trigger. It sits among the tracer's assembly
// drivers and adds nothing to the block.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "filters/input/filter.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

// A tracer's flight recorder, to those who ask it.
struct FlightControl {
  // Writes a snapshot and returns its path. Threads: any.
  std::function<Result<std::string>(std::string_view reason)> snapshot;
  // An operation has matched. Set before the tracer starts; must not wait.
  std::function<void()> on_trigger;
  uint64_t every_ns = 0;  // between two calls of on_trigger
};

class TriggerTap final : public AssemblyDriver {
 public:
  // `others` are the tracer's drivers: only operations of which they record the
  // end are seen.
  TriggerTap(Filter filter, std::shared_ptr<FlightControl> control,
             std::vector<std::shared_ptr<const AssemblyDriver>> others);

  AssemblyNeeds Needs(Op op) const override;
  bool Assemble(Event& event, BlockBuilder& block) const override;
  // Paths must be looked up while they are certain, ancestors while they live.
  bool NamesDefined(const Event& event,
                    const BlockBuilder& block) const override;

 private:
  void Fire() const;

  const Filter filter_;
  const std::shared_ptr<FlightControl> control_;
  const std::vector<std::shared_ptr<const AssemblyDriver>> others_;
  mutable std::atomic<uint64_t> last_ns_{0};
};

}  // namespace tracefs
