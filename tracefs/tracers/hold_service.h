// HoldService: what a rule's `hold` is done by. The mount makes it: holding
// takes its file system.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/rules/rule_engine.h"

namespace tracefs {

// Threads: any.
class HoldService {
 public:
  virtual ~HoldService() = default;
  // Holds the changes of who made a rule of `tracer` fire. What was done, for
  // people: "3, of process 4711 and all below it, for 60 s, then fail".
  virtual Result<std::string> Begin(uint32_t tracer, const Rule& rule,
                                    const RuleAction& action,
                                    const Alarm& alarm) = 0;
  // Those of a tracer that was stopped or removed go on.
  virtual void EndOf(uint32_t tracer) = 0;
  // About once a second: ends what is over.
  virtual void Tick() = 0;
  // Those of a tracer that have ended since it was asked last, and whom nobody
  // let go. Costs a load where there are none.
  virtual std::vector<HoldOver> TakeOver(uint32_t tracer) = 0;
};

}  // namespace tracefs
