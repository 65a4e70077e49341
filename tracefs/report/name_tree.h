// NameTree: things that have names within each other, such as files in
// directories, and what was done with each of them. Memory is bounded: when
// there are too many, those of which least is known are folded into what they
// stand in, which remembers their sums. Totals therefore stay exact; what a
// node says of itself is too little by at most missed().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tracefs/base/hash_table.h"
#include "tracefs/base/text_dictionary.h"
#include "tracefs/report/series.h"
#include "tracefs/report/time_grid.h"
#include "tracefs/tally/sums.h"

namespace tracefs::report {

// Number of a node; 0 is the root, and a child has a larger number than its
// parent.
using NodeId = uint32_t;

// Used by one thread.
class NameTree {
 public:
  struct Limits {
    size_t nodes = 1 << 18;
    size_t name_bytes = size_t{64} << 20;
    size_t series_points = 1 << 20;
  };
  struct Node {
    NodeId parent = 0;
    uint32_t name = 0;
    tally::Sums own;     // without what lies in it
    tally::Sums folded;  // of things in it that have no node (any more)
    uint64_t folded_nodes = 0;
    Series series;  // of `own`
    Series inside;  // of what lies directly in it, where that is asked for
  };

  NameTree() : NameTree(Limits()) {}
  explicit NameTree(Limits limits);

  // The node of that name in `parent`; it is made if need be.
  NodeId Child(NodeId parent, std::string_view name);
  void Add(NodeId node, const tally::Sums& what) { nodes_[node].own.Add(what); }
  // The same, at that time. `inside`: also to the series of what the parent
  // has inside.
  void Add(NodeId node, const tally::Sums& what, uint64_t ns,
           const Bins& coarse, bool inside = false);

  // Whether it is time for Fold or DropSeries; to be asked between operations.
  bool IsFull() const {
    return nodes_.size() > limits_.nodes ||
           names_.bytes().size() > limits_.name_bytes;
  }
  bool HasTooManyPoints() const {
    return points_ > static_cast<int64_t>(limits_.series_points);
  }
  // Folds half of the nodes. Returns for each number of before the number now:
  // of those folded that of what they were folded into.
  std::vector<NodeId> Fold();
  // Drops the series of half of the nodes that have one.
  void DropSeries();

  size_t size() const { return nodes_.size(); }
  const Node& at(NodeId node) const { return nodes_[node]; }
  Node& at(NodeId node) { return nodes_[node]; }
  std::string_view NameOf(NodeId node) const {
    return names_.At(nodes_[node].name);
  }
  // The sums of all nodes, folded ones too, and the most that any node of its
  // own can lack of each.
  tally::Sums Total() const;
  const tally::Sums& missed() const { return missed_; }
  bool exact() const { return missed_.count == 0; }

  // By how much each node, with all that lies in it, matters: the largest of
  // its shares of the total of each metric. Never less than that of a child.
  std::vector<double> Weights() const;
  // The sums of each node with all that lies in it.
  std::vector<tally::Sums> Sums() const;
  // The `most` nodes that matter most, in order of numbers; never one without
  // its parent, and the root always.
  std::vector<NodeId> Heaviest(size_t most) const;

 private:
  const Limits limits_;
  std::vector<Node> nodes_;
  TextDictionary names_;
  HashIndex by_name_;
  int64_t points_ = 0;
  tally::Sums missed_;
};

// The share of `part` in `total` that is largest, over all metrics.
double LargestShare(const tally::Sums& part, const tally::Sums& total);

}  // namespace tracefs::report
