// The options of tracefs-dump that ask for a table instead of a listing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/command/command_line.h"
#include "tracefs/query/grouping.h"

namespace tracefs {

struct QueryOptions {
  query::GroupSpec group;
  std::string sort;           // "" = as it is
  std::optional<size_t> top;  // 0 = all
  std::vector<std::string> columns;
  std::string hist;      // what a histogram is of; "" = none
  uint64_t width = 0;    // of its rows; 0 = powers of two
  std::string plot;      // the value that is drawn; "" = none
  bool longest = false;  // a listing that is sorted: its first `limit` rows
  size_t limit = 0;      // rows at most; 0 = all
  bool raw = false;      // exact figures in text
};

// Of --hist: what only a walk over all operations in order of time tells.
bool IsDerivedHistogram(std::string_view hist);

void AddQueryOptions(CommandOptions* options);

// Nothing if what was given asks for no table. `columns`: of --columns.
Result<std::optional<QueryOptions>> ReadQueryOptions(const CommandLine& given);

}  // namespace tracefs
