// One picture of `tracefs-ctl top`, as lines of text.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tracefs/tools/ctl/options.h"
#include "tracefs/tools/ctl/top_model.h"

namespace tracefs {

struct TopView {
  std::string mount;
  TopOrder order = TopOrder::kCount;
  bool all = false;  // since the start, else the last interval
  bool paused = false;
  bool keys = false;   // tell which keys there are
  size_t width = 100;  // columns; longer lines are cut
  size_t height = 50;  // lines
};

// At most view.height lines, none wider than view.width, without line ends.
// What came from file and process names is safe for a terminal.
std::vector<std::string> TopPicture(const TopModel& model, const TopView& view);

// "1.23us", "45ms": four characters or little more.
std::string ShortDuration(uint64_t ns);
// "950", "12.3k", "4.56M".
std::string ShortNumber(double number);

}  // namespace tracefs
