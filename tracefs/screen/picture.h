// A browser's state as lines of a screen.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tracefs/screen/browser.h"
#include "tracefs/screen/line.h"
#include "tracefs/screen/look.h"

namespace tracefs::screen {

struct Picture {
  std::vector<Line> lines;  // no more, and none wider, than there is room for
  std::vector<Hit> hits;
  size_t rows = 0;  // how many of the table, or of the page, have room
};

// What came from names of files, processes and mounts is safe for a terminal.
Picture Draw(const Browser& browser, size_t width, size_t height,
             const Means& means);

// For who has no screen: operations, processes, files and directories one
// below the other in so many lines; or, with `only`, all rows of that view,
// with whole names.
std::vector<std::string> Report(const Browser& browser, const View* only,
                                size_t width, size_t height,
                                const Means& means);

}  // namespace tracefs::screen
