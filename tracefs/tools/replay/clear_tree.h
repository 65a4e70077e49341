// Empties a directory that this program has filled.
#pragma once

#include <string>

#include "tracefs/base/status.h"

namespace tracefs {

// Removes all that is in `folder`, which stays. No link is followed and no
// other file system entered.
Status ClearTree(const std::string& folder);

}  // namespace tracefs
