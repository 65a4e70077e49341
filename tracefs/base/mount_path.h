// Paths in the lines of /proc/self/mountinfo.
#pragma once

#include <string>
#include <string_view>

namespace tracefs {

// Undoes their \ooo escapes (proc_pid_mountinfo(5)).
std::string UnescapeMountPath(std::string_view text);

}  // namespace tracefs
