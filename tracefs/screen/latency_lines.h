// Durations as pictures of characters.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "tracefs/screen/browser.h"
#include "tracefs/screen/line.h"
#include "tracefs/screen/look.h"

namespace tracefs::screen {

// Durations by power of two, at most so many lines; ends are put together.
// `of`: what they are of, safe for a terminal.
std::vector<Line> HistogramLines(const ActivityCounts& counts,
                                 std::string_view of, size_t width,
                                 size_t height, const Means& means);
// Time downwards, the last interval first; duration to the right.
std::vector<Line> SpectrogramLines(const Browser& browser, size_t width,
                                   size_t height, const Means& means);

}  // namespace tracefs::screen
