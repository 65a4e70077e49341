// A browser's state as lines of a screen.
#pragma once

#include <cstddef>
#include <vector>

#include "tracefs/screen/browser.h"
#include "tracefs/screen/line.h"
#include "tracefs/screen/look.h"

namespace tracefs::screen {

struct Picture {
  std::vector<Line> lines;  // no more, and none wider, than there is room for
  std::vector<Hit> hits;
  size_t rows = 0;        // how many of the table, or of the page, have room
  size_t page_lines = 0;  // of the page, also those that have no room
};

// What came from names of files, processes and mounts is safe for a terminal.
Picture Draw(const Browser& browser, size_t width, size_t height,
             const Means& means);

}  // namespace tracefs::screen
