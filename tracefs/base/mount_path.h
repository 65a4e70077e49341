// Paths below a mount point.
#pragma once

#include <string_view>

namespace tracefs {

// Whether `path` is `folder` or lies in it. Both absolute, without links and
// without a slash at the end.
bool IsAtOrBelow(std::string_view path, std::string_view folder);

}  // namespace tracefs
