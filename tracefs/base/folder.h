// Directories: what is in one, and what lies above it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tracefs/base/status.h"

namespace tracefs {

// The names in the directory that `dir` is open as, whatever its flags, but "."
// and ".."; in no order. kSystem if it cannot be listed.
Result<std::vector<std::string>> NamesInFolder(int dir);

// Whether the directory `above` is one of those above the directory `dir`.
// Nothing, and errno, if that cannot be found out.
std::optional<bool> IsAbove(int above, int dir);

}  // namespace tracefs
