#include "tracefs/query/pictures.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace tracefs::query {
namespace {

constexpr uint64_t kBarWidth = 40;
// So many in a row are shown one by one.
constexpr uint64_t kEmptyRows = 3;
constexpr std::string_view kBlocks[] = {" ",      "\u2581", "\u2582",
                                        "\u2583", "\u2584", "\u2585",
                                        "\u2586", "\u2587", "\u2588"};
constexpr std::string_view kDigits[] = {" ", "1", "2", "3", "4",
                                        "5", "6", "7", "8"};

}  // namespace

Table HistogramTable(const Table& counts, Unit unit, HistogramCuts cuts) {
  const size_t at = counts.Find("count").value_or(1);
  std::map<uint64_t, uint64_t> by_low;
  uint64_t absent = 0;
  uint64_t all = 0;
  uint64_t most = 1;
  for (const Row& row : counts.rows) {
    const uint64_t count = row[at].number;
    if (!row[0].present) {
      absent += count;
      continue;
    }
    by_low[row[0].number] = count;
    all += count;
    most = std::max(most, count);
  }
  Table table;
  table.columns = {{"from", unit},
                   {"to", unit},
                   {"count", Unit::kNumber, true},
                   {"share", Unit::kShare, true},
                   {"up_to", Unit::kShare},
                   {"bar"}};
  uint64_t seen = 0;
  const auto add = [&](uint64_t low, uint64_t high, uint64_t count) {
    seen += count;
    // What is there at all shows.
    const auto width = static_cast<size_t>(
        count == 0
            ? 0
            : std::max<uint64_t>(1, static_cast<uint64_t>(
                                        static_cast<double>(count) * kBarWidth /
                                        static_cast<double>(most))));
    table.rows.push_back(
        {Value::Number(low), Value::Number(high), Value::Number(count),
         Value::Share(count, all), Value::Share(seen, all),
         count == 0 ? Value() : Value::Text(std::string(width, '#'))});
  };
  uint64_t next = by_low.empty() ? 0 : by_low.begin()->first;
  for (const auto& [low, count] : by_low) {
    const uint64_t width = cuts.HighOf(next) - next + 1;
    if (cuts.is_linear() && (low - next) / width > kEmptyRows) {
      add(next, low - 1, 0);
      next = low;
    }
    for (; next < low; next = cuts.HighOf(next) + 1) {
      add(next, cuts.HighOf(next), 0);
    }
    add(low, cuts.HighOf(low), count);
    next = cuts.HighOf(low) + 1;
  }
  if (absent != 0) {
    table.notes.push_back(std::to_string(absent) +
                          " operations have no such value");
  }
  if (counts.other) {
    table.notes.push_back(std::to_string((*counts.other)[at].number) +
                          " operations are of rows there was no room for: "
                          "wider ones are fewer");
  }
  return table;
}

Table HistogramTable(const HistogramRows& rows, Unit unit, HistogramCuts cuts) {
  Table counts;
  counts.columns = {{"from", unit}, {"count", Unit::kNumber}};
  for (const auto& [low, count] : rows.by_low()) {
    counts.rows.push_back({Value::Number(low), Value::Number(count)});
  }
  if (rows.no_room() != 0) {
    counts.other = {Value::Text("other"), Value::Number(rows.no_room())};
  }
  return HistogramTable(counts, unit, cuts);
}

Result<Table> PlotTable(const Table& periods, const std::string& value,
                        uint64_t every_ns, bool blocks) {
  const auto at = periods.Find(value);
  if (!at) return Status::Invalid("--plot: there is no value " + value);
  const Unit unit = periods.columns[*at].unit;
  const size_t keys = static_cast<size_t>(
      std::ranges::count_if(periods.columns, [&](const TableColumn& column) {
        return &column - periods.columns.data() < static_cast<ptrdiff_t>(*at);
      }));
  uint64_t first = UINT64_MAX;
  uint64_t last = 0;
  for (const Row& row : periods.rows) {
    if (!row[0].present) continue;
    first = std::min(first, row[0].number);
    last = std::max(last, row[0].number);
  }
  const uint64_t columns = first > last ? 0 : (last - first) / every_ns + 1;
  if (columns > kMostPeriods) {
    return Status::Invalid("--plot: " + std::to_string(columns) +
                           " periods are too many to show: --every needs to "
                           "be longer");
  }
  struct Line {
    std::vector<uint64_t> values;
    uint64_t sum = 0;
    Row key;
  };
  // Nothing is no 0, and no text without a letter.
  using Part = std::tuple<bool, uint64_t, std::string>;
  std::map<std::vector<Part>, Line> lines;
  for (const Row& row : periods.rows) {
    if (!row[0].present) continue;
    std::vector<Part> name;
    for (size_t k = 1; k < keys; ++k) {
      name.emplace_back(row[k].present, row[k].number, row[k].text);
    }
    Line& line = lines[name];
    if (line.values.empty()) {
      line.values.resize(columns);
      line.key.assign(row.begin() + 1,
                      row.begin() + static_cast<ptrdiff_t>(keys));
    }
    line.values[(row[0].number - first) / every_ns] = row[*at].number;
    line.sum += row[*at].number;
  }
  Table table;
  table.columns.assign(periods.columns.begin() + 1,
                       periods.columns.begin() + static_cast<ptrdiff_t>(keys));
  table.columns.push_back({"plot"});
  table.columns.push_back({"max", unit});
  if (periods.columns[*at].adds) table.columns.push_back({"sum", unit, true});
  for (auto& [name, line] : lines) {
    const uint64_t most = std::ranges::max(line.values);
    std::string plot;
    for (const uint64_t v : line.values) {
      const auto height = static_cast<size_t>(
          v == 0 ? 0
                 : 1 + static_cast<uint64_t>(static_cast<double>(v) * 7 /
                                             static_cast<double>(most)));
      plot += blocks ? kBlocks[height] : kDigits[height];
    }
    Row row = std::move(line.key);
    row.push_back(Value::Text(plot));
    row.push_back(Value::Number(most));
    if (periods.columns[*at].adds) row.push_back(Value::Number(line.sum));
    table.rows.push_back(std::move(row));
  }
  table.notes.push_back(std::to_string(columns) + " periods");
  return table;
}

}  // namespace tracefs::query
