// How many descriptors the process may have open.
#pragma once

#include <cstdint>

namespace tracefs {

// Raises the limit to `wanted`, as far as it may without rights, and never
// lowers it. The limit that holds from now on; 0 if nobody can tell.
uint64_t RaiseDescriptorLimit(uint64_t wanted = UINT64_MAX);

}  // namespace tracefs
