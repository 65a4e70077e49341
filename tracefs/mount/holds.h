// Holds: the rules' `hold`, done by the file system (hold_lot.h), and told in
// the log and the trace of the tracer whose rule it was: when it begins, and
// who ended it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/fs/hold_lot.h"
#include "tracefs/pipeline/pipeline.h"
#include "tracefs/tracers/hold_service.h"

namespace tracefs {

// Threads: any. What it is made of outlives it.
class Holds final : public HoldService {
 public:
  Holds(HoldLot& lot, Pipeline& pipeline) : lot_(lot), pipeline_(pipeline) {}

  Result<std::string> Begin(uint32_t tracer, const Rule& rule,
                            const RuleAction& action,
                            const Alarm& alarm) override;
  void Tick() override;
  std::vector<HoldOver> TakeOver(uint32_t tracer) override;

  // Ends one, as `by` decided; kInvalid if there is none of that number.
  Status Release(uint64_t number, HoldEnd how, std::string_view by);
  // Has what waits fail, and what comes; the hold goes on. Likewise.
  Status Refuse(uint64_t number);
  // An undo is at work as this process.
  void Spare(uint32_t pid);
  void EndOf(uint32_t tracer) override;
  std::vector<HoldLot::Held> All() const { return lot_.All(); }

 private:
  void Tell(const HoldLot::Held& held, const std::string& what);
  // Its rule may fire again at once.
  void NoteOver(const HoldLot::Held& held);

  HoldLot& lot_;
  Pipeline& pipeline_;
  struct Over {
    uint32_t tracer = 0;
    HoldOver hold;
  };
  std::atomic<bool> any_over_{false};
  std::mutex mu_;
  std::vector<Over> over_;  // guarded by mu_; not taken yet
};

}  // namespace tracefs
