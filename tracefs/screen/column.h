// The columns of a view, a row each.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tracefs::screen {

enum class Column : uint8_t {
  kCount,
  kErrors,
  kBytes,
  kTime,
  kMean,
  kP50,
  kP90,
  kP99,
  kMax,
  kName,
};
inline constexpr size_t kColumns = 10;

struct ColumnInfo {
  Column column;
  std::string_view name;   // for --sort and the title line
  std::string_view rate;   // its title where numbers are a second's
  std::string_view total;  // where they are sums
  size_t width;            // 0: what is left
  int rank;                // the smaller, the sooner it has room
  std::string_view help;
};

std::span<const ColumnInfo> Columns();
const ColumnInfo& Info(Column column);
// Null if there is none of that name.
const ColumnInfo* FindColumn(std::string_view name);
std::vector<std::string_view> ColumnNames();
// Those that fit into so many characters beside a name of some length, in
// their order; the last is kName. `needed` is among them.
std::vector<Column> ColumnsFor(size_t width, Column needed);

}  // namespace tracefs::screen
