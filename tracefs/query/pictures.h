// Tables that are pictures: histograms and lines over time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/query/histogram_rows.h"
#include "tracefs/query/table.h"

namespace tracefs::query {

// Of a table with the columns NAME (where a row of `cuts` begins) and `count`,
// in any order: a row for each from the smallest to the largest, with its
// share, what all up to it have, and a bar. Many empty ones of linear cuts are
// one row.
Table HistogramTable(const Table& counts, Unit unit,
                     HistogramCuts cuts = HistogramCuts());
// The same of what was counted as it came.
Table HistogramTable(const HistogramRows& rows, Unit unit,
                     HistogramCuts cuts = HistogramCuts());

// A table whose first column begins a period and which has a column `value`, as
// lines: a row for each other key with one character a period. `blocks`:
// U+2581 to U+2588, else digits. kInvalid if there are more than kMostPeriods.
inline constexpr uint64_t kMostPeriods = 10000;
Result<Table> PlotTable(const Table& periods, const std::string& value,
                        uint64_t every_ns, bool blocks);

}  // namespace tracefs::query
