// Faults: which request a daemon crashed at.
#pragma once

#include "tracefs/survive/area.h"

namespace tracefs::survive {

// From now on a thread that crashes this process says so in the area
// (Header::faulted) before the process ends of it, as it would have. What
// catches such signals already is called afterwards.
void NoteFaults();

}  // namespace tracefs::survive
