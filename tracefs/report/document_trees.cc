// Parts of the document that are trees: a column for each thing that is told of
// nodes, a parent always before its children.
#include <algorithm>
#include <functional>
#include <utility>

#include "tracefs/report/document_parts.h"
#include "tracefs/report/units_text.h"

namespace tracefs::report {
namespace {

constexpr size_t kMostTreePoints = 9'000;
constexpr size_t kMostUses = 5'000;
constexpr size_t kMostUsesOfFile = 40;

// Those nodes of a tree that go into the document; the sums of the others are
// with the nearest ancestor that does.
struct Cut {
  std::vector<NodeId> nodes;
  std::vector<size_t> place;    // by node: of itself or that ancestor
  std::vector<size_t> parents;  // by place in `nodes`
  std::vector<tally::Sums> folded;
  std::vector<uint64_t> folded_nodes;
};

Cut CutTree(const NameTree& tree, size_t most) {
  Cut cut;
  cut.nodes = tree.Heaviest(most);
  std::vector<size_t> place(tree.size(), SIZE_MAX);
  for (size_t i = 0; i < cut.nodes.size(); ++i) place[cut.nodes[i]] = i;
  cut.folded.resize(cut.nodes.size());
  cut.folded_nodes.resize(cut.nodes.size());
  for (NodeId node = 0; node < tree.size(); ++node) {
    const NameTree::Node& it = tree.at(node);
    const bool left_out = place[node] == SIZE_MAX;
    if (left_out) place[node] = place[it.parent];
    const size_t at = place[node];
    if (left_out) {
      cut.folded[at].Add(it.own);
      ++cut.folded_nodes[at];
    }
    cut.folded[at].Add(it.folded);
    cut.folded_nodes[at] += it.folded_nodes;
  }
  for (const NodeId node : cut.nodes) {
    cut.parents.push_back(place[tree.at(node).parent]);
  }
  cut.place = std::move(place);
  return cut;
}

// As many nodes as have room, by what `bytes_of` says that a node needs.
Cut CutToFit(const NameTree& tree, size_t most, size_t bytes,
             const std::function<size_t(NodeId)>& bytes_of) {
  for (;;) {
    Cut cut = CutTree(tree, most);
    size_t needed = 0;
    for (const NodeId node : cut.nodes) needed += bytes_of(node);
    if (needed <= bytes || most <= 1) return cut;
    most = std::max<size_t>(1, most / 2);
  }
}

void AppendColumns(const tally::Sums& sums, const char* prefix, Json* columns) {
  const Json numbers = SumsAsJson(sums);
  for (const auto& [name, number] : numbers.items()) {
    (*columns)[prefix + name].push_back(number);
  }
}

Json Columns(const NameTree& tree, const Cut& cut) {
  Json columns;
  for (size_t i = 0; i < cut.nodes.size(); ++i) {
    const NameTree::Node& node = tree.at(cut.nodes[i]);
    columns["parent"].push_back(i == 0 ? Json(nullptr) : Json(cut.parents[i]));
    AppendColumns(node.own, "", &columns);
    columns["folded_nodes"].push_back(cut.folded_nodes[i]);
    if (cut.folded_nodes[i] == 0) continue;
    // Sparse: by place.
    columns["folded"][std::to_string(i)] = SumsAsJson(cut.folded[i]);
  }
  if (!columns.contains("folded")) columns["folded"] = Json::object();
  columns["exact"] = tree.exact();
  return columns;
}

// What each node did itself, over time.
Json SeriesOf(NameTree& tree, const Cut& cut, const Bins& coarse) {
  size_t points_left = kMostTreePoints;
  Json series = Json::array();
  for (const NodeId node : cut.nodes) {
    series.push_back(SeriesAsJson(tree.at(node).series, coarse, &points_left));
  }
  return series;
}

// What the processes did with one file, those that did most first; of each its
// place.
using Uses = std::vector<std::pair<size_t, tally::Sums>>;

// Processes that are folded into one are one.
void JoinUses(Uses* uses) {
  std::ranges::sort(*uses, {}, [](const auto& use) { return use.first; });
  size_t kept = 0;
  for (size_t i = 0; i < uses->size(); ++i) {
    if (kept != 0 && (*uses)[kept - 1].first == (*uses)[i].first) {
      (*uses)[kept - 1].second.Add((*uses)[i].second);
    } else {
      (*uses)[kept++] = (*uses)[i];
    }
  }
  uses->resize(kept);
  std::ranges::stable_sort(*uses, std::greater(),
                           [](const auto& use) { return use.second.count; });
  if (uses->size() > kMostUsesOfFile) uses->resize(kMostUsesOfFile);
}

void Note(const char* panel, const NameTree& tree, const Cut& cut,
          Json* notes) {
  uint64_t folded = 0;
  for (const uint64_t nodes : cut.folded_nodes) folded += nodes;
  if (folded == 0) return;
  notes->push_back(std::string(panel) + ": " + CountText(cut.nodes.size()) +
                   " are shown; " + CountText(folded) +
                   (tree.exact() ? "" : " or more") +
                   " that matter less are part of what they stand in");
}

}  // namespace

Json TreeAsJson(Collector& collector, const std::vector<NodeId>& file_rows,
                Json* notes) {
  const NameTree& files = collector.files();
  const auto name = [&](NodeId node) {
    return node == 0 ? std::string("/") : TextOf(files.NameOf(node), 300);
  };
  const Cut cut = CutToFit(files, 3000, 150'000, [&](NodeId node) {
    return EmbeddedBytes(name(node));
  });
  Json columns = Columns(files, cut);
  for (const NodeId node : cut.nodes) columns["name"].push_back(name(node));
  std::vector<Json> rows(files.size());
  for (size_t i = 0; i < file_rows.size(); ++i) rows[file_rows[i]] = i;
  for (const NodeId node : cut.nodes) columns["file"].push_back(rows[node]);
  Note("tree of files", files, cut, notes);
  return columns;
}

Json FlameAsJson(Collector& collector, Json* notes) {
  NameTree& flame = collector.flame();
  const auto name = [&](NodeId node) {
    return node == 0 ? std::string("all") : TextOf(flame.NameOf(node), 200);
  };
  const Cut cut = CutToFit(flame, 3000, 120'000, [&](NodeId node) {
    return EmbeddedBytes(name(node));
  });
  Json columns = Columns(flame, cut);
  for (const NodeId node : cut.nodes) columns["name"].push_back(name(node));
  columns["series"] = SeriesOf(flame, cut, collector.grid().coarse());
  Note("flame graph", flame, cut, notes);
  return columns;
}

Json ProcessesAsJson(Collector& collector, std::vector<size_t>* places,
                     Json* notes) {
  Processes& processes = collector.processes();
  NameTree& tree = processes.tree();
  const uint64_t origin = OriginOf(collector);
  const auto name = [&](NodeId node) {
    return node == 0 ? std::string("all")
                     : TextOf(processes.facts(node).name, 100);
  };
  const auto command = [&](NodeId node) {
    return TextOf(processes.facts(node).command, 200);
  };
  Cut cut = CutToFit(tree, 3000, 220'000, [&](NodeId node) {
    return EmbeddedBytes(name(node)) + EmbeddedBytes(command(node));
  });
  Json columns = Columns(tree, cut);
  for (const NodeId node : cut.nodes) {
    const Processes::Facts& facts = processes.facts(node);
    columns["name"].push_back(name(node));
    columns["command"].push_back(command(node));
    columns["pid"].push_back(facts.pid);
    columns["ppid"].push_back(facts.ppid);
    const bool timed = facts.begin_ns != 0;
    columns["begin_ns"].push_back(timed ? Json(Since(origin, facts.begin_ns))
                                        : Json(nullptr));
    columns["end_ns"].push_back(timed ? Json(Since(origin, facts.end_ns))
                                      : Json(nullptr));
    columns["begun"].push_back(facts.begun ? 1 : 0);
    columns["ended"].push_back(facts.ended ? 1 : 0);
    columns["exit"].push_back(
        facts.signal      ? Json("signal " + std::to_string(*facts.signal))
        : facts.exit_code ? Json(std::to_string(*facts.exit_code))
                          : Json(""));
  }
  columns["recorded"] = processes.any_records();
  columns["series"] = SeriesOf(tree, cut, collector.grid().coarse());
  Note("processes", tree, cut, notes);
  *places = std::move(cut.place);
  return columns;
}

Json UsesAsJson(Collector& collector, const std::vector<NodeId>& file_rows,
                const std::vector<size_t>& process_places) {
  constexpr size_t kNoRow = SIZE_MAX;
  std::vector<size_t> row_of(collector.files().size(), kNoRow);
  for (size_t i = 0; i < file_rows.size(); ++i) row_of[file_rows[i]] = i;
  std::vector<Uses> by_row(file_rows.size());
  for (const FileUses::Use& use : collector.uses().uses()) {
    const size_t row = row_of[use.file];
    if (row == kNoRow) continue;
    by_row[row].emplace_back(process_places[use.process],
                             tally::Sums{.count = use.count,
                                         .errors = use.errors,
                                         .bytes = use.bytes,
                                         .time_ns = use.time_ns});
  }
  Json flat = Json::array();
  uint64_t listed = 0;
  size_t uses = 0;
  for (size_t row = 0; row < by_row.size() && uses < kMostUses; ++row) {
    JoinUses(&by_row[row]);
    for (const auto& [place, sum] : by_row[row]) {
      if (uses++ >= kMostUses) break;
      listed = tally::AddTo(listed, sum.count);
      for (const uint64_t number : {uint64_t{row}, uint64_t{place}, sum.count,
                                    sum.errors, sum.bytes, sum.time_ns}) {
        flat.push_back(number);
      }
    }
  }
  const uint64_t all = collector.total().count;
  const uint64_t left_out = all > listed ? all - listed : 0;
  return {{"rows", std::move(flat)}, {"left_out", left_out}};
}

}  // namespace tracefs::report
