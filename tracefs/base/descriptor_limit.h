// How many descriptors the process may have open.
#pragma once

#include <cstdint>

namespace tracefs {

// Raises the limit to `wanted`, as far as possible without privileges, and
// never lowers it. Returns the limit from now on; 0 if it is unknown.
uint64_t RaiseDescriptorLimit(uint64_t wanted = UINT64_MAX);

}  // namespace tracefs
