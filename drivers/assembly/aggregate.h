// The aggregate driver (paper section 2.3): counts operations by what they have
// in common instead of recording each.
//
// Each thread counts in a KeyCounts of its own. The pipeline takes these away,
// one after the other, when a period is over, at the end, and when somebody
// asks for totals; here they are added up.
#pragma once

#include <memory>

#include "drivers/assembly/aggregate_spec.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

std::unique_ptr<AssemblyDriver> MakeAggregate(AggregateSpec spec);

}  // namespace tracefs
