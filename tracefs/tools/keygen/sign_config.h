// tracefs-keygen sign-config and verify-config: configs for
// tracefs-mount --config-dir.
#pragma once

#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/command/command_line.h"

namespace tracefs {

// The options of sign-config alone.
inline constexpr const char* kSignConfigOptions[] = {"config-version",
                                                     "expires", "rollout"};

// `words`: sign-config CONFIG SIGNED.
Status SignConfigFile(const CommandLine& given,
                      const std::vector<std::string>& words);
// `words`: verify-config SIGNED...; a line for each. kCorrupt if one of them
// would not be taken.
Status VerifyConfigFiles(const CommandLine& given,
                         const std::vector<std::string>& words);

}  // namespace tracefs
