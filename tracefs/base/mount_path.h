// Paths in the lines of /proc/self/mountinfo.
#pragma once

#include <string>
#include <string_view>

namespace tracefs {

// Undoes their \ooo escapes (proc_pid_mountinfo(5)).
std::string UnescapeMountPath(std::string_view text);

// Whether `path` is `folder` or lies in it. Both absolute, without links and
// without a slash at the end.
bool IsAtOrBelow(std::string_view path, std::string_view folder);

}  // namespace tracefs
