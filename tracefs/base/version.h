// Which Tracefs this is.
#ifndef TRACEFS_BASE_VERSION_H_
#define TRACEFS_BASE_VERSION_H_

#include <string_view>

namespace tracefs {

// "0.1.0", from the CMakeLists.txt of the project.
extern const std::string_view kVersion;

}  // namespace tracefs

#endif  // TRACEFS_BASE_VERSION_H_
