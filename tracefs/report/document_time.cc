// Parts of the document with bins of time: time, operations, timeline, latency.
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "tracefs/report/document_parts.h"

namespace tracefs::report {
namespace {

// "2026-01-02T03:04:05.123456789Z".
std::string UtcText(uint64_t real_ns) {
  const auto seconds = static_cast<time_t>(real_ns / 1'000'000'000);
  tm fields{};
  if (::gmtime_r(&seconds, &fields) == nullptr) return "?";
  std::array<char, 80> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02d-%02dT%02d:%02d:%02d.%09uZ",
                fields.tm_year + 1900, fields.tm_mon + 1, fields.tm_mday,
                fields.tm_hour, fields.tm_min, fields.tm_sec,
                static_cast<unsigned>(real_ns % 1'000'000'000));
  return text.data();
}

Json RowAsJson(BinRow& row, const Bins& bins) {
  Json numbers = Json::array();
  for (const uint64_t number : row.Numbers(bins)) numbers.push_back(number);
  return numbers;
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
  time["origin"] = UtcText(origin);
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
  return {{"rows", std::move(rows)}, {"cells", std::move(cells)}};
}

}  // namespace tracefs::report
