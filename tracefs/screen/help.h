// The page that `?` shows.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tracefs::screen {

// Lines for a screen that is so wide, of so many mounts or traces.
std::vector<std::string> HelpLines(bool live, size_t sources, size_t width);

}  // namespace tracefs::screen
