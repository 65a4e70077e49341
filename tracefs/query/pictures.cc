#include "tracefs/query/pictures.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "tracefs/text/duration.h"
#include "tracefs/text/units.h"

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
  counts.columns = {{"from", unit}, {"count", Unit::kCount}};
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
  // Behind the period, which is a `time`, too, and the keys.
  const auto found =
      std::ranges::find(periods.columns.rbegin(), periods.columns.rend() - 1,
                        value, &TableColumn::name);
  if (found == periods.columns.rend() - 1) {
    return Status::Invalid("--plot: there is no value " + value);
  }
  const size_t at = static_cast<size_t>(periods.columns.rend() - found) - 1;
  const Unit unit = periods.columns[at].unit;
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
    std::vector<double> heights;
    Value most;
    Value sum;
    Row key;
  };
  const auto height_of = [unit](const Value& cell) {
    return unit == Unit::kShare ? cell.share : static_cast<double>(cell.number);
  };
  // Nothing is no 0, and no text without a letter.
  using Part = std::tuple<bool, uint64_t, std::string>;
  std::map<std::vector<Part>, Line> lines;
  for (const Row& row : periods.rows) {
    if (!row[0].present) continue;
    std::vector<Part> name;
    for (size_t k = 1; k < at; ++k) {
      name.emplace_back(row[k].present, row[k].number, row[k].text);
    }
    Line& line = lines[name];
    if (line.heights.empty()) {
      line.heights.resize(columns);
      line.key.assign(row.begin() + 1,
                      row.begin() + static_cast<ptrdiff_t>(at));
    }
    const Value& cell = row[at];
    if (!cell.present) continue;
    const double height = height_of(cell);
    line.heights[(row[0].number - first) / every_ns] = height;
    if (!line.most.present || height > height_of(line.most)) line.most = cell;
    line.sum.present = true;
    line.sum.number += cell.number;
    line.sum.share += cell.share;
  }
  Table table;
  table.columns.assign(periods.columns.begin() + 1,
                       periods.columns.begin() + static_cast<ptrdiff_t>(at));
  table.columns.push_back({"plot"});
  table.columns.push_back({"max", unit});
  if (periods.columns[at].adds) table.columns.push_back({"sum", unit, true});
  for (auto& [name, line] : lines) {
    const double most = std::ranges::max(line.heights);
    std::string plot;
    for (const double height : line.heights) {
      const auto step =
          static_cast<size_t>(height <= 0 ? 0 : 1 + 7 * height / most);
      plot += blocks ? kBlocks[step] : kDigits[step];
    }
    Row row = std::move(line.key);
    row.push_back(Value::Text(plot));
    row.push_back(line.most);
    if (periods.columns[at].adds) row.push_back(line.sum);
    table.rows.push_back(std::move(row));
  }
  std::string length = DurationText(every_ns);
  if (!blocks && length.ends_with("\u00b5s")) {
    length.replace(length.size() - 3, 3, "us");
  }
  table.notes.push_back(CountText(columns, "period", "periods") + " of " +
                        length);
  return table;
}

}  // namespace tracefs::query
