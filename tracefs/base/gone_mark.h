// How the kernel tells that a name is gone.
#pragma once

#include <string_view>

namespace tracefs {

// What the links of /proc have after the path of a file that no longer has that
// name (linux/fs/d_path.c). A name may end like it.
inline constexpr std::string_view kGoneMark = " (deleted)";

}  // namespace tracefs
