// Which operations a predicate speaks of.
#pragma once

#include <cstdint>

#include "filters/input/check.h"
#include "tracefs/event/field.h"

namespace tracefs {

// Bit per operation that may satisfy a predicate on the field: those whose
// requests have it, and mean by it what the predicate says.
uint64_t OpsWith(Field field);
// Whether some request has the field and means something else by it, so that
// such a predicate must look at the operation, too.
bool MeansSeveral(Field field);
// The predicate that does: on the operations of OpsWith.
Predicate PredicateOnOps(Field field);

}  // namespace tracefs
