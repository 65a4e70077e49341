// A sheet as lines: the titles of its columns, and its rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tracefs/screen/browser.h"
#include "tracefs/screen/line.h"
#include "tracefs/screen/look.h"

namespace tracefs::screen {

// How a table is drawn.
struct TableStyle {
  std::vector<Column> columns;
  Column sort{};
  double seconds = 0;  // numbers are divided by that; 0: they are sums
  uint64_t all_ns = 0;
  size_t width = 0;
  bool utf8 = true;
};

TableStyle StyleOf(const Browser& browser, const Sheet& sheet, size_t width,
                   const Means& means);
// `line`: which one of the screen it is, for clicks; `hits` may be null.
Line HeadLine(std::string_view title, const TableStyle& style, size_t line,
              std::vector<Hit>* hits);
// Safe for a terminal.
Line RowLine(const Row& row, const TableStyle& style);

}  // namespace tracefs::screen
