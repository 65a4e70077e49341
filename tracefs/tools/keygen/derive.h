// tracefs-keygen --derive: a key for one domain of anonymised traces, to give
// to somebody who may know only that.
#pragma once

#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/command/command_line.h"

namespace tracefs {

// Options of --derive, which tracefs-keygen has no other use for.
inline constexpr const char* kDeriveOptions[] = {"key", "day", "subtree",
                                                 "policy", "recipient"};

// kInvalid if what was given makes no sense. `words`: DOMAIN and the new file.
Status DeriveKeyFile(const CommandLine& given,
                     const std::vector<std::string>& words);

}  // namespace tracefs
