// What plans of tracers ask of the mount they are for.
#pragma once

#include <span>

#include "tracefs/event/op.h"
#include "tracefs/tracers/plan.h"

namespace tracefs {

// Some tracer asks who did it.
bool NeedCallers(std::span<const TracerPlan> plans);
// Some tracer asks for the system call, for CallerDetails, for ancestors.
bool NeedCalls(std::span<const TracerPlan> plans);
bool NeedDetails(std::span<const TracerPlan> plans);
bool NeedAncestors(std::span<const TracerPlan> plans);
// Some tracer has operations fail that it cannot record (when_full = fail): the
// mount stays shut, too, when its daemon dies.
bool FailsClosed(std::span<const TracerPlan> plans);
// Some tracer keeps process records.
bool NeedProcesses(std::span<const TracerPlan> plans);
// Some filter, or one that a rule may raise a tracer to, names a lock operation
// and may keep it: lock requests must come to us. A filter that merely does not
// exclude them leaves them to the kernel, whose locks cost nothing and detect
// deadlocks.
bool NamesLocks(std::span<const TracerPlan> plans);
// The tracer may record the operation, or some lock operation.
bool MayKeep(const TracerPlan& plan, Op op);
bool MayKeepLocks(const TracerPlan& plan);

}  // namespace tracefs
