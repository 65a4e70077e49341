// OpPlans: what one tracer does about each operation: its filter, and what
// filter and assembly drivers together need. Immutable, so that a tracer's
// filter is swapped by publishing other plans.
#pragma once

#include <array>
#include <memory>
#include <span>

#include "tracefs/event/op.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

class OpPlans {
 public:
  struct OpPlan {
    bool record = false;        // a message may result
    bool before = false;        // a message before the operation
    bool caller = false;        // the caller is recorded
    bool syscall = false;       // the system call is recorded
    bool details = false;       // likewise CallerDetails; then `caller`, too
    bool decide_early = false;  // the filter reads values that may be gone
                                // later
    bool always = false;        // the filter keeps every one
    bool data = false;
    bool order = false;
    bool keep = false;
    bool extents = false;
    bool names = false;
  };

  OpPlans(std::unique_ptr<const InputFilter> filter,
          std::span<const std::shared_ptr<const AssemblyDriver>> assembly);

  const OpPlan& plan(Op op) const { return plans_[Index(op)]; }
  const InputFilter& filter() const { return *filter_; }

 private:
  const std::unique_ptr<const InputFilter> filter_;
  std::array<OpPlan, kOpCount> plans_;
};

}  // namespace tracefs
