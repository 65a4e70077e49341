// Which rows of a table come first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tracefs/query/table.h"

namespace tracefs::query {

// All rows of the table by their numbers: first the `most` that come first, in
// order, then the others in any. By column `by`: texts from A to Z, numbers
// from the largest one; `ascending`: the other way round. Equals by their other
// cells, from the left, the least first.
std::vector<uint32_t> SortedRows(const Table& table, size_t by, bool ascending,
                                 size_t most);

}  // namespace tracefs::query
