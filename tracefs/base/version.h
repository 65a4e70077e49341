// Which Tracefs this is.
#pragma once

#include <string_view>

namespace tracefs {

// "0.1.0", from the CMakeLists.txt of the project.
extern const std::string_view kVersion;

}  // namespace tracefs
