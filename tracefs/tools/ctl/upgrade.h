// `tracefs-ctl MNT upgrade`.
#pragma once

#include <chrono>
#include <string>

#include "tracefs/base/status.h"

namespace tracefs {

// Asks the mount to go on with the program that is installed now, and waits
// until it does. What serves it then: what `stats` says of its survival, JSON.
// Otherwise why not: the mount goes on as before.
Result<std::string> UpgradeAndWait(const std::string& mount_point,
                                   std::chrono::seconds patience);
// That as a line for a person.
Result<std::string> UpgradeText(const std::string& json);

}  // namespace tracefs
