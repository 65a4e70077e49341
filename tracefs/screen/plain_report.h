// A browser's state as plain text, for who has no screen.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tracefs/screen/browser.h"
#include "tracefs/screen/look.h"

namespace tracefs::screen {

// Operations, processes, files and directories one below the other in so many
// lines; or, with `only`, all rows of that view, with whole names. Safe for a
// terminal.
std::vector<std::string> Report(const Browser& browser, const View* only,
                                size_t width, size_t height,
                                const Means& means);

}  // namespace tracefs::screen
