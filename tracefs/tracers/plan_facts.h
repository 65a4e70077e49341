// What plans of tracers ask of the mount they are for.
#pragma once

#include <span>

#include "tracefs/event/op.h"
#include "tracefs/tracers/plan.h"

namespace tracefs {

// Some tracer has operations fail that it cannot record (when_full = fail): the
// mount stays shut, too, when its daemon dies.
bool FailsClosed(std::span<const TracerPlan> plans);
// Some filter, a trigger, or a filter that a rule may raise a tracer to, names
// a lock operation and may keep it: lock requests must come to us. A filter
// that merely does not exclude them leaves them to the kernel, whose locks cost
// nothing and detect deadlocks.
bool NamesLocks(std::span<const TracerPlan> plans);
// The tracer may record the operation, or some lock operation.
bool MayKeep(const TracerPlan& plan, Op op);
bool MayKeepLocks(const TracerPlan& plan);

}  // namespace tracefs
