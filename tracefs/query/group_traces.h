// Grouping the operations of traces, read the fastest way that its keys allow.
#pragma once

#include "tracefs/base/status.h"
#include "tracefs/query/grouping.h"
#include "tracefs/reader/trace_input.h"

namespace tracefs::query {

// Adds all that `input` has.
Status GroupTraces(reader::TraceInput* input, Grouping* grouping);

}  // namespace tracefs::query
