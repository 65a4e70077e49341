// What follows the last whole frame in the file of a stored trace, before it is
// cut off: nothing that was received is thrown away without a trace.
#pragma once

#include <cstdint>
#include <string>

#include "tracefs/base/status.h"

namespace tracefs {

// Copies the bytes from `from` to `to` of `fd`, the file `name` in `directory`,
// to "NAME.rest-N" beside it, for good, and says so.
Status KeepRest(int directory, const std::string& name, int fd, uint64_t from,
                uint64_t to);

}  // namespace tracefs
