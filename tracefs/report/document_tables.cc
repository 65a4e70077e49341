// Parts of the document that are tables.
#include <algorithm>
#include <functional>
#include <numeric>

#include "tracefs/report/document_parts.h"
#include "tracefs/report/units_text.h"
#include "tracefs/text/flag_names.h"

namespace tracefs::report {
namespace {

constexpr size_t kSeriesPoints = 9'000;
constexpr size_t kMostSeries = kMostTableRows;

struct Row {
  NodeId node = 0;
  tally::Sums sums;
};

// What a table is made from: some rows of one tree.
struct Source {
  const char* name;
  NameTree* tree;
  std::vector<Row> rows;
  std::function<std::string(NodeId)> text;
  Series& (*series)(NameTree::Node& node);
};

Series& OwnSeries(NameTree::Node& node) { return node.series; }
Series& InsideSeries(NameTree::Node& node) { return node.inside; }

Json TableAsJson(Source source, const Bins& coarse, const tally::Sums& total,
                 std::vector<NodeId>* nodes, Json* notes) {
  std::vector<double> weights(source.tree->size());
  for (const Row& row : source.rows) {
    weights[row.node] = LargestShare(row.sums, total);
  }
  std::sort(source.rows.begin(), source.rows.end(),
            [&](const Row& a, const Row& b) {
              return weights[a.node] != weights[b.node]
                         ? weights[a.node] > weights[b.node]
                         : a.node < b.node;
            });
  Json rows = Json::array();
  Json series = Json::array();
  tally::Sums shown;
  size_t bytes_left = kTableNameBytes;
  size_t points_left = kSeriesPoints;
  for (const Row& row : source.rows) {
    if (rows.size() >= kMostTableRows) break;
    std::string text = source.text(row.node);
    const size_t bytes = EmbeddedBytes(text);
    if (bytes > bytes_left) break;
    bytes_left -= bytes;
    Json numbers = Json::array({std::move(text)});
    AppendSums(row.sums, &numbers);
    if (rows.size() < kMostSeries) {
      series.push_back(SeriesAsJson(source.series(source.tree->at(row.node)),
                                    coarse, &points_left));
    }
    rows.push_back(std::move(numbers));
    nodes->push_back(row.node);
    shown.Add(row.sums);
  }
  Json other = Json::array();
  const auto rest = [](uint64_t all, uint64_t part) {
    return all > part ? all - part : 0;
  };
  AppendSums({.count = rest(total.count, shown.count),
              .errors = rest(total.errors, shown.errors),
              .bytes = rest(total.bytes, shown.bytes),
              .read = rest(total.read, shown.read),
              .written = rest(total.written, shown.written),
              .time_ns = rest(total.time_ns, shown.time_ns),
              .max_ns = 0},
             &other);
  const size_t left_out = source.rows.size() - rows.size();
  if (!source.tree->exact()) {
    notes->push_back(std::string(source.name) +
                     ": there are more than could be kept apart; a row may be "
                     "short of up to " +
                     std::to_string(source.tree->missed().count) +
                     " operations, which are in the last line");
  }
  return {
      {"rows", std::move(rows)},       {"series", std::move(series)},
      {"other", std::move(other)},     {"left_out", left_out},
      {"exact", source.tree->exact()}, {"missed", source.tree->missed().count}};
}

// Flat: bin, count; and so on. As SeriesAsJson.
Json CountsAsJson(Series& series, const Bins& coarse, size_t* points_left) {
  if (series.dropped() || series.size() == 0) return nullptr;
  const auto& points = series.Points(coarse.shift);
  if (points.size() > *points_left) return nullptr;
  *points_left -= points.size();
  Json flat = Json::array();
  for (const SeriesPoint& point : points) {
    flat.push_back(point.bin - coarse.first);
    flat.push_back(point.count);
  }
  return flat;
}

// A copy is counted for its first file, and has bytes of both.
bool DidAnything(const tally::Sums& sums) {
  return sums.count != 0 || sums.bytes != 0;
}

// Of each node what it did itself.
std::vector<Row> OwnRows(const NameTree& tree) {
  std::vector<Row> rows;
  for (NodeId node = 0; node < tree.size(); ++node) {
    if (!DidAnything(tree.at(node).own)) continue;
    rows.push_back({node, tree.at(node).own});
  }
  return rows;
}

// For each directory what was done with what lies directly in it; with the root
// itself in the root.
std::vector<Row> InsideRows(const NameTree& tree) {
  std::vector<tally::Sums> inside(tree.size());
  for (NodeId node = 0; node < tree.size(); ++node) {
    inside[node].Add(tree.at(node).folded);
    inside[tree.at(node).parent].Add(tree.at(node).own);
  }
  std::vector<Row> rows;
  for (NodeId node = 0; node < tree.size(); ++node) {
    if (DidAnything(inside[node])) rows.push_back({node, inside[node]});
  }
  return rows;
}

}  // namespace

Json SeriesAsJson(Series& series, const Bins& coarse, size_t* points_left) {
  if (series.dropped() || series.size() == 0) return nullptr;
  const auto& points = series.Points(coarse.shift);
  if (points.size() > *points_left) return nullptr;
  *points_left -= points.size();
  Json flat = Json::array();
  for (const SeriesPoint& point : points) {
    flat.push_back(point.bin - coarse.first);
    flat.push_back(point.count);
    flat.push_back(point.errors);
    flat.push_back(point.bytes);
    flat.push_back(point.time_ns);
  }
  return flat;
}

Json TablesAsJson(Collector& collector, std::vector<NodeId>* file_rows,
                  Json* notes) {
  const Bins coarse = collector.grid().coarse();
  const auto path = [&](NodeId node) { return TextOf(collector.PathOf(node)); };
  const auto name_in = [](NameTree& tree) {
    return [&tree](NodeId node) { return TextOf(tree.NameOf(node)); };
  };
  NameTree& files = collector.files();
  Json tables;
  for (const Source& source : {
           Source{"files", &files, OwnRows(files), path, OwnSeries},
           Source{"directories", &files, InsideRows(files), path, InsideSeries},
           Source{"extensions", &collector.extensions(),
                  OwnRows(collector.extensions()),
                  name_in(collector.extensions()), OwnSeries},
           Source{"commands", &collector.commands(),
                  OwnRows(collector.commands()), name_in(collector.commands()),
                  OwnSeries},
           Source{"users", &collector.users(), OwnRows(collector.users()),
                  name_in(collector.users()), OwnSeries},
       }) {
    std::vector<NodeId> nodes;
    tables[source.name] =
        TableAsJson(source, coarse, collector.total(), &nodes, notes);
    if (source.series == &OwnSeries && source.tree == &files) {
      *file_rows = std::move(nodes);
    }
  }
  return tables;
}

Json ErrorsAsJson(Collector& collector) {
  constexpr size_t kMost = 2000;
  NameTree& failures = collector.failures();
  std::vector<NodeId> leaves;
  for (NodeId node = 1; node < failures.size(); ++node) {
    const NameTree::Node& it = failures.at(node);
    if (it.own.count + it.folded.count != 0) leaves.push_back(node);
  }
  const auto count = [&](NodeId node) {
    return failures.at(node).own.count + failures.at(node).folded.count;
  };
  std::stable_sort(leaves.begin(), leaves.end(),
                   [&](NodeId a, NodeId b) { return count(a) > count(b); });
  Json rows = Json::array();
  Json series = Json::array();
  uint64_t others = 0;
  size_t bytes_left = kMost * 60;
  size_t points_left = kSeriesPoints;
  const Bins coarse = collector.grid().coarse();
  for (const NodeId leaf : leaves) {
    // Errno, operation, command; less where it was folded.
    std::vector<std::string> names;
    for (NodeId at = leaf; at != 0; at = failures.at(at).parent) {
      names.insert(names.begin(), TextOf(failures.NameOf(at), 100));
    }
    names.resize(3, "(others)");
    const size_t bytes = 20 + EmbeddedBytes(names[2]);
    if (rows.size() >= kMost || bytes > bytes_left) {
      others += count(leaf);
      continue;
    }
    bytes_left -= bytes;
    rows.push_back({names[0], names[1], names[2], count(leaf)});
    series.push_back(
        CountsAsJson(failures.at(leaf).series, coarse, &points_left));
  }
  return {{"rows", std::move(rows)},
          {"series", std::move(series)},
          {"others", others + failures.at(0).folded.count}};
}

// "ENOENT"; "" of what did not fail.
static std::string ErrorText(uint32_t error) {
  if (error == 0) return {};
  const std::string_view name = ErrnoName(error);
  return name.empty() ? std::to_string(error) : std::string(name);
}

Json SlowestAsJson(const Collector& collector,
                   const std::vector<SlowOperation>& slowest, size_t most_bytes,
                   Json* notes) {
  const uint64_t origin = OriginOf(collector);
  Json rows = Json::array();
  size_t bytes_left = most_bytes;
  for (const SlowOperation& slow : slowest) {
    const std::string path = TextOf(slow.path, 500);
    const size_t bytes = 60 + EmbeddedBytes(path) + EmbeddedBytes(slow.comm);
    if (bytes > bytes_left) {
      notes->push_back(
          "slowest operations: " + CountText(slowest.size() - rows.size()) +
          " of those that were the slowest of a short time are "
          "left out");
      break;
    }
    bytes_left -= bytes;
    rows.push_back(
        {slow.real_ns == 0 ? Json(nullptr) : Json(Since(origin, slow.real_ns)),
         slow.time_ns, OpName(slow.op), ErrorText(slow.error), slow.pid,
         TextOf(slow.comm, 100), path});
  }
  return rows;
}

}  // namespace tracefs::report
