// The page that `?` shows.
#pragma once

#include <string>
#include <vector>

namespace tracefs::screen {

std::vector<std::string> HelpLines(bool live);

}  // namespace tracefs::screen
