// FileUses: which process did how much with which file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tracefs/base/hash_table.h"
#include "tracefs/report/name_tree.h"
#include "tracefs/tally/sums.h"

namespace tracefs::report {

// Used by one thread. Memory is bounded: pairs that come when there is no room
// are counted, and not kept apart.
class FileUses {
 public:
  static constexpr size_t kMost = size_t{1} << 17;  // pairs

  struct Use {
    NodeId file = 0;
    NodeId process = 0;
    uint64_t count = 0;
    uint64_t errors = 0;
    uint64_t bytes = 0;
    uint64_t time_ns = 0;
  };

  void Add(NodeId file, NodeId process, const tally::Sums& what);
  // Nodes have other numbers from now on, as NameTree::Fold returns them;
  // empty: they are as they were.
  void Renumber(const std::vector<NodeId>& files,
                const std::vector<NodeId>& processes);

  // In no order.
  const std::vector<Use>& uses() const { return uses_; }
  // Operations of pairs that found no room.
  uint64_t missed() const { return missed_; }

 private:
  static void Join(const Use& from, Use* to);
  // Null: there is no room.
  Use* Find(NodeId file, NodeId process);

  std::vector<Use> uses_;
  HashIndex by_pair_;  // places in uses_
  uint64_t missed_ = 0;
};

}  // namespace tracefs::report
