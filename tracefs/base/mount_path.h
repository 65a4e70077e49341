// Paths in the lines of /proc/self/mountinfo.
#ifndef TRACEFS_BASE_MOUNT_PATH_H_
#define TRACEFS_BASE_MOUNT_PATH_H_

#include <string>
#include <string_view>

namespace tracefs {

// Undoes their \ooo escapes (proc_pid_mountinfo(5)).
std::string UnescapeMountPath(std::string_view text);

}  // namespace tracefs

#endif  // TRACEFS_BASE_MOUNT_PATH_H_
