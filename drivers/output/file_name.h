// Names of outputs that differ each time: `file = "/var/log/data-%date.trace"`.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tracefs/base/status.h"
#include "tracefs/format/constants.h"

namespace tracefs {

// `name` with %date (20261122T031405Z, of `real_ns`), %serial (that of the
// trace, 32 digits) and %% (one %) in place. kInvalid for any other % in it.
Result<std::string> ExpandFileName(std::string_view name, uint64_t real_ns,
                                   const format::Serial& serial);

// `name` with %date in place and all else as it is: a template again.
std::string ExpandDate(std::string_view name, uint64_t real_ns);

// Whether it would be another one each time.
bool IsTemplate(std::string_view name);

}  // namespace tracefs
