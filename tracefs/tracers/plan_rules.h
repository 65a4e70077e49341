// The rules of a config, and the tracers that feed them.
#pragma once

#include <cstdint>
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
Status PlanRules(const Config& file, uint32_t first_id,
                 const NameService& users, NameTable& names,
                 std::vector<TracerPlan>* plans);

}  // namespace tracefs
