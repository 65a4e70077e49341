// Sheet: activity rolled up for one view: its rows, in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/screen/activity.h"
#include "tracefs/screen/column.h"
#include "tracefs/screen/drill.h"

namespace tracefs::screen {

struct SheetOptions {
  Group group{};
  Drill drill;
  std::string find;  // only rows whose name has this text, in any case
  Column sort = Column::kCount;
  bool ascending = false;
  bool tree = false;             // of processes and directories
  std::set<std::string> folded;  // Row::id of those whose children are hidden
  std::vector<std::string> sources;  // what they are called
};

struct Row {
  std::string id;      // the same in the next interval
  std::string name;    // any bytes
  Term term;           // what opening it adds to the filter
  bool other = false;  // what no row stands for: cannot be opened
  size_t depth = 0;    // in a tree
  bool parent = false;
  bool folded = false;
  ActivityCounts counts;

  // The number in a column, for sorting; 0 of kName.
  uint64_t In(Column column) const;
};

struct Sheet {
  std::vector<Row> rows;
  ActivityCounts total;  // of what the drill keeps, hidden rows too
};

// The remainder, what has no name here, and all other rows add up to `total`
// (but in a tree of directories, where rows have what is below them).
Sheet MakeSheet(const ActivityTable& table, const SheetOptions& options);

}  // namespace tracefs::screen
