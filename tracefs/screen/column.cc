#include "tracefs/screen/column.h"

#include <algorithm>
#include <array>

namespace tracefs::screen {
namespace {

constexpr std::array<ColumnInfo, kColumns> kColumnRows = {{
    {Column::kCount, "count", "OPS/S", "OPS", 8, 0, "operations"},
    {Column::kErrors, "errors", "ERR/S", "ERRORS", 8, 3,
     "those of them that failed"},
    {Column::kBytes, "bytes", "BYTES/S", "BYTES", 9, 2, "read and written"},
    {Column::kTime, "time", "TIME%", "TIME%", 7, 1,
     "share of the time in all operations here"},
    {Column::kMean, "mean", "MEAN", "MEAN", 8, 8, "of the durations"},
    {Column::kP50, "p50", "P50", "P50", 8, 5, "half take no longer"},
    {Column::kP90, "p90", "P90", "P90", 8, 7, "nine of ten take no longer"},
    {Column::kP99, "p99", "P99", "P99", 8, 4, "99 of 100 take no longer"},
    {Column::kMax, "max", "MAX", "MAX", 8, 6, "the longest"},
    {Column::kName, "name", "", "", 0, -1, "in alphabetical order"},
}};

// Characters that a name should have at least.
constexpr size_t kNameWidth = 20;

}  // namespace

std::span<const ColumnInfo> Columns() { return kColumnRows; }

const ColumnInfo& Info(Column column) {
  return kColumnRows[static_cast<size_t>(column)];
}

const ColumnInfo* FindColumn(std::string_view name) {
  const auto at = std::find_if(
      kColumnRows.begin(), kColumnRows.end(),
      [name](const ColumnInfo& info) { return info.name == name; });
  return at == kColumnRows.end() ? nullptr : at;
}

std::vector<std::string_view> ColumnNames() {
  std::vector<std::string_view> names;
  for (const ColumnInfo& info : kColumnRows) names.push_back(info.name);
  return names;
}

std::vector<Column> ColumnsFor(size_t width, Column needed) {
  std::vector<const ColumnInfo*> order;
  for (const ColumnInfo& info : kColumnRows) order.push_back(&info);
  std::stable_sort(order.begin(), order.end(),
                   [needed](const ColumnInfo* a, const ColumnInfo* b) {
                     const auto rank = [needed](const ColumnInfo* info) {
                       return info->column == needed ? -1 : info->rank;
                     };
                     return rank(a) < rank(b);
                   });
  size_t used = kNameWidth + 2;
  std::vector<Column> chosen;
  for (const ColumnInfo* info : order) {
    if (info->width != 0 && used + info->width > width) break;
    used += info->width;
    chosen.push_back(info->column);
  }
  if (std::find(chosen.begin(), chosen.end(), Column::kName) == chosen.end()) {
    chosen.push_back(Column::kName);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace tracefs::screen
