// Parts of the document with bins of time: time, operations, timeline, latency.
#include <time.h>

#include <algorithm>

#include "tracefs/report/document_parts.h"
#include "tracefs/text/time_text.h"

namespace tracefs::report {
namespace {

Json RowAsJson(BinRow& row, const Bins& bins) {
  Json numbers = Json::array();
  for (const uint64_t number : row.Numbers(bins)) numbers.push_back(number);
  return numbers;
}

// Rows of cells that the page has, at most. Where there are more, neighbours
// are joined.
constexpr size_t kMostCells = 25'000;

size_t CountCells(Collector& collector, const Bins& coarse, int joined) {
  size_t cells = 0;
  std::vector<bool> seen;
  for (const std::unique_ptr<OpSums>& op : collector.ops()) {
    if (op == nullptr) continue;
    auto& rows = op->cells.rows();
    for (size_t row = 0; row < rows.size(); ++row) {
      // The first of those that are joined starts over.
      if ((row & ((size_t{1} << joined) - 1)) == 0)
        seen.assign(coarse.size, false);
      const auto& numbers = rows[row].Numbers(coarse);
      for (size_t bin = 0; bin < numbers.size(); ++bin) {
        if (numbers[bin] == 0 || seen[bin]) continue;
        seen[bin] = true;
        ++cells;
      }
    }
  }
  return cells;
}

// How many rows of cells are joined into one, as a power of two: as few as fit.
int JoinedRows(Collector& collector, const Bins& coarse) {
  int joined = 0;
  constexpr int kMost =
      tally::kHistogramBits - kCellShift;  // one a power of two
  while (joined < kMost && CountCells(collector, coarse, joined) > kMostCells) {
    ++joined;
  }
  return joined;
}

// Flat: bin, row, count; and so on; in order of rows.
Json CellsAsJson(LatencyCells& cells, const Bins& coarse, int joined) {
  Json flat = Json::array();
  auto& rows = cells.rows();
  std::vector<uint64_t> sums;
  for (size_t row = 0; row < rows.size(); ++row) {
    const auto& numbers = rows[row].Numbers(coarse);
    sums.resize(coarse.size);
    for (size_t bin = 0; bin < numbers.size(); ++bin) sums[bin] += numbers[bin];
    const bool last =
        row + 1 == rows.size() || (row + 1) >> joined != row >> joined;
    if (!last) continue;
    for (size_t bin = 0; bin < sums.size(); ++bin) {
      if (sums[bin] == 0) continue;
      for (const size_t number :
           {bin, row >> joined, static_cast<size_t>(sums[bin])}) {
        flat.push_back(number);
      }
      sums[bin] = 0;
    }
  }
  return flat;
}

}  // namespace

Json TimeAsJson(const Collector& collector) {
  const TimeGrid& grid = collector.grid();
  Json time = {{"bins", 0}, {"coarse_bins", 0}};
  if (grid.empty()) return time;
  const uint64_t origin = OriginOf(collector);
  const Bins fine = grid.fine();
  const Bins coarse = grid.coarse();
  // As text: a double of JavaScript would round it.
  time["origin_ns"] = std::to_string(origin);
  time["origin"] = Rfc3339(origin, 9);
  time["length_ns"] = grid.last_ns() - origin;
  time["bin_ns"] = fine.width_ns();
  time["bins"] = fine.size;
  time["begin_ns"] = Since(origin, fine.begin_ns());
  time["coarse_bin_ns"] = coarse.width_ns();
  time["coarse_bins"] = coarse.size;
  time["coarse_begin_ns"] = Since(origin, coarse.begin_ns());
  return time;
}

Json OperationsAsJson(Collector& collector) {
  std::vector<size_t> order;
  for (size_t op = 0; op < kOpCount; ++op) {
    if (collector.ops()[op] != nullptr) order.push_back(op);
  }
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    const tally::Sums& left = collector.ops()[a]->sums;
    const tally::Sums& right = collector.ops()[b]->sums;
    return left.time_ns != right.time_ns ? left.time_ns > right.time_ns
                                         : left.count > right.count;
  });
  const Bins coarse = collector.grid().coarse();
  const int joined = JoinedRows(collector, coarse);
  size_t points_left = kOpCount * TimeGrid::kMostBins;
  Json operations = Json::array();
  for (const size_t op : order) {
    OpSums& sums = *collector.ops()[op];
    Json row = SumsAsJson(sums.sums);
    row["op"] = OpName(static_cast<Op>(op));
    row["timed"] = sums.latency.count();
    row["shortest_ns"] = sums.latency.min();
    row["p50_ns"] = sums.latency.Quantile(0.5);
    row["p90_ns"] = sums.latency.Quantile(0.9);
    row["p99_ns"] = sums.latency.Quantile(0.99);
    row["p999_ns"] = sums.latency.Quantile(0.999);
    row["bins"] = RowAsJson(sums.counts, collector.grid().fine());
    row["series"] = SeriesAsJson(sums.series, coarse, &points_left);
    row["cells"] = CellsAsJson(sums.cells, coarse, joined);
    Json latency = Json::array();
    const auto rows = LatencyRowsOf(sums.latency);
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] != 0) latency.push_back({i, rows[i]});
    }
    row["latency"] = std::move(latency);
    operations.push_back(std::move(row));
  }
  return operations;
}

Json TimelineAsJson(Collector& collector,
                    const std::vector<const format::TraceReader*>& traces) {
  const Bins fine = collector.grid().fine();
  return {{"errors", RowAsJson(collector.errors(), fine)},
          {"read", RowAsJson(collector.read(), fine)},
          {"written", RowAsJson(collector.written(), fine)},
          {"time_ns", RowAsJson(collector.time(), fine)},
          {"counted", CountedLayersAsJson(collector, traces)}};
}

Json LatencyAsJson(Collector& collector) {
  Json rows = Json::array();
  for (size_t row = 0; row < kLatencyRows; ++row) {
    rows.push_back(LatencyRowBegin(row));
  }
  // Bin, row, count; bin, row, count; …
  Json cells = Json::array();
  const Bins coarse = collector.grid().coarse();
  for (size_t row = 0; row < kLatencyRows; ++row) {
    const auto& numbers = collector.latency_rows()[row].Numbers(coarse);
    for (size_t bin = 0; bin < numbers.size(); ++bin) {
      if (numbers[bin] == 0) continue;
      cells.push_back(bin);
      cells.push_back(row);
      cells.push_back(numbers[bin]);
    }
  }
  Json cell_rows = Json::array();
  const int shift = kCellShift + JoinedRows(collector, coarse);
  size_t used = 0;
  for (const std::unique_ptr<OpSums>& op : collector.ops()) {
    if (op != nullptr) used = std::max(used, op->cells.rows().size());
  }
  // And where the last one ends.
  const size_t most = tally::kHistogramBuckets >> kCellShift;
  used = std::min(most, used + (size_t{1} << (shift - kCellShift)));
  for (size_t row = 0; row << (shift - kCellShift) < used; ++row) {
    cell_rows.push_back(
        tally::HistogramLow(static_cast<uint16_t>(row << shift)));
  }
  return {{"rows", std::move(rows)},
          {"cells", std::move(cells)},
          {"cell_rows", std::move(cell_rows)}};
}

}  // namespace tracefs::report
