#include "tracefs/report/name_tree.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace tracefs::report {
namespace {

double Share(uint64_t part, uint64_t total) {
  return total == 0 ? 0
                    : static_cast<double>(part) / static_cast<double>(total);
}

// Unlike that of a pointer the same everywhere, and well spread in its low
// bits.
uint64_t HashOf(NodeId parent, std::string_view name) {
  const uint64_t text = std::hash<std::string_view>()(name);
  const uint64_t hash =
      (text ^ parent * 0x9e3779b97f4a7c15u) * 0xff51afd7ed558ccdu;
  return hash ^ hash >> 32;
}

}  // namespace

double LargestShare(const tally::Sums& part, const tally::Sums& total) {
  return std::max(
      {Share(part.count, total.count), Share(part.errors, total.errors),
       Share(part.time_ns, total.time_ns), Share(part.bytes, total.bytes)});
}

NameTree::NameTree(Limits limits) : limits_(limits) {
  nodes_.resize(1);
  nodes_[0].name = names_.Add("");
}

NodeId NameTree::Child(NodeId parent, std::string_view name) {
  const auto fresh = static_cast<NodeId>(nodes_.size());
  const NodeId node =
      by_name_.FindOrAdd(HashOf(parent, name), fresh, [&](NodeId known) {
        return nodes_[known].parent == parent && NameOf(known) == name;
      });
  if (node != fresh) return node;
  nodes_.emplace_back();
  nodes_.back().parent = parent;
  nodes_.back().name = names_.Add(name);
  return node;
}

void NameTree::Add(NodeId node, const tally::Sums& what, uint64_t ns,
                   const Bins& coarse, bool inside) {
  Node& it = nodes_[node];
  it.own.Add(what);
  points_ += it.series.Add(ns, coarse.shift, what);
  if (inside) {
    points_ += nodes_[it.parent].inside.Add(ns, coarse.shift, what);
  }
}

tally::Sums NameTree::Total() const {
  tally::Sums total;
  for (const Node& node : nodes_) {
    total.Add(node.own);
    total.Add(node.folded);
  }
  return total;
}

std::vector<tally::Sums> NameTree::Sums() const {
  std::vector<tally::Sums> sums(nodes_.size());
  for (size_t i = nodes_.size(); i-- > 0;) {
    sums[i].Add(nodes_[i].own);
    sums[i].Add(nodes_[i].folded);
    if (i != 0) sums[nodes_[i].parent].Add(sums[i]);
  }
  return sums;
}

std::vector<double> NameTree::Weights() const {
  const tally::Sums total = Total();
  std::vector<double> weights(nodes_.size());
  for (size_t i = nodes_.size(); i-- > 0;) {
    weights[i] = std::max(weights[i], LargestShare(nodes_[i].own, total));
    if (i != 0) {
      double& parent = weights[nodes_[i].parent];
      parent = std::max(parent, weights[i]);
    }
  }
  return weights;
}

std::vector<NodeId> NameTree::Heaviest(size_t most) const {
  std::vector<NodeId> order(nodes_.size());
  std::iota(order.begin(), order.end(), 0);
  if (order.size() <= most) return order;
  const std::vector<double> weights = Weights();
  // A parent is as heavy and has a smaller number: it comes before its child.
  const auto before = [&](NodeId a, NodeId b) {
    if ((a == 0) != (b == 0)) return a == 0;
    return weights[a] != weights[b] ? weights[a] > weights[b] : a < b;
  };
  const auto end = order.begin() + static_cast<ptrdiff_t>(most);
  std::nth_element(order.begin(), end, order.end(), before);
  order.erase(end, order.end());
  std::sort(order.begin(), order.end());
  return order;
}

std::vector<NodeId> NameTree::Fold() {
  const std::vector<NodeId> kept =
      Heaviest(std::max<size_t>(1, nodes_.size() / 2));
  constexpr NodeId kGone = UINT32_MAX;
  std::vector<NodeId> now(nodes_.size(), kGone);
  for (size_t i = 0; i < kept.size(); ++i) {
    now[kept[i]] = static_cast<NodeId>(i);
  }
  tally::Sums largest;
  const auto most = [](uint64_t& a, uint64_t b) { a = std::max(a, b); };
  for (size_t i = nodes_.size(); i-- > 0;) {
    if (now[i] != kGone) continue;
    const Node& node = nodes_[i];
    Node& parent = nodes_[node.parent];
    parent.folded.Add(node.own);
    parent.folded.Add(node.folded);
    parent.folded_nodes += 1 + node.folded_nodes;
    most(largest.count, node.own.count);
    most(largest.errors, node.own.errors);
    most(largest.bytes, node.own.bytes);
    most(largest.read, node.own.read);
    most(largest.written, node.own.written);
    most(largest.time_ns, node.own.time_ns);
  }
  missed_.Add(largest);
  // A parent comes before its children: its new number is known by then.
  for (size_t i = 1; i < now.size(); ++i) {
    if (now[i] == kGone) now[i] = now[nodes_[i].parent];
  }
  // A number is never larger than it was: nodes move up where they are.
  TextDictionary names;
  points_ = 0;
  by_name_.Clear();
  for (size_t i = 0; i < kept.size(); ++i) {
    const std::string_view name = NameOf(kept[i]);
    if (i != kept[i]) nodes_[i] = std::move(nodes_[kept[i]]);
    Node& node = nodes_[i];
    node.name = names.Add(name);
    node.parent = now[node.parent];
    points_ += static_cast<int64_t>(node.series.size() + node.inside.size());
    if (i != 0) by_name_.Add(HashOf(node.parent, name), static_cast<NodeId>(i));
  }
  nodes_.resize(kept.size());
  names_ = std::move(names);
  return now;
}

void NameTree::DropSeries() {
  const std::vector<double> weights = Weights();
  std::vector<NodeId> with;
  for (NodeId i = 0; i < nodes_.size(); ++i) {
    if (nodes_[i].series.size() + nodes_[i].inside.size() != 0) {
      with.push_back(i);
    }
  }
  const auto half = with.begin() + static_cast<ptrdiff_t>(with.size() / 2);
  std::nth_element(with.begin(), half, with.end(), [&](NodeId a, NodeId b) {
    return weights[a] != weights[b] ? weights[a] > weights[b] : a < b;
  });
  points_ = 0;
  for (auto at = with.begin(); at != with.end(); ++at) {
    Node& node = nodes_[*at];
    if (at >= half) {
      node.series.Drop();
      node.inside.Drop();
    } else {
      points_ += static_cast<int64_t>(node.series.size() + node.inside.size());
    }
  }
}

}  // namespace tracefs::report
