// The rules of a config, and the tracers that feed them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "config/config.h"
#include "filters/input/name_service.h"
#include "filters/input/name_table.h"
#include "tracefs/base/status.h"
#include "tracefs/tracers/plan.h"

namespace tracefs {

// Appends a plan for each tracer of `file` that has rules; `plans` begins with
// those of its tracers, whose ids count from `first_id`. Errors say
// "file:line:column: …".
Status PlanRules(const Config& file, uint32_t first_id, RuleTargets targets,
                 const NameService& users, NameTable& names,
                 std::vector<TracerPlan>* plans);

// The id of the tracer that an action of a rule names, by its name or its
// number among these; kInvalid if there is none, or none to which that can be
// done.
Result<uint32_t> TargetOf(const RuleAction& action,
                          std::span<const FileTracer> tracers);

}  // namespace tracefs
