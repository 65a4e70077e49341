// From traces and live counts to activity.
#pragma once

#include <cstdint>
#include <string_view>

#include "tracefs/event/event.h"
#include "tracefs/format/aggregate.h"
#include "tracefs/format/record.h"
#include "tracefs/screen/activity.h"

namespace tracefs::screen {

// Counts an operation of a source; one that is about to run does not count.
void CountRecord(const format::Record& record, uint32_t source,
                 Activity* activity);
// Counts what a mount has counted of one combination (`watch`); what belongs to
// none, and operations that this version does not know, as others.
void CountAggregate(const format::AggregateRecord& record, uint32_t source,
                    Activity* activity);

}  // namespace tracefs::screen
