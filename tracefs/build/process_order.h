// ProcessOrder: what happens before what in a tree of processes.
//
// A process does one thing after another; whatever it does before it forks a
// child comes before all that the child does; and all that a child does comes
// before what its parent does once the child has ended, as a parent that goes
// on then has waited, or might have. What none of these order, and what several
// of them in a row do not, could as well be the other way round.
//
// A process that outlives its parent is waited for by no relative. Where
// process records do not say at once when a process ends, it is taken to live
// as long as it is seen to do something, and to wait for its children.
#pragma once

#include <cstdint>
#include <vector>

#include "tracefs/build/build_graph.h"

namespace tracefs::build {

// `graph` outlives it. Memory: some bytes for each process.
class ProcessOrder {
 public:
  explicit ProcessOrder(const BuildGraph& graph);

  // Whether what `first` does at `at_ns` comes before what `then` does at
  // `then_ns`, which is not earlier. Takes time in proportion to the logarithm
  // of how deep the tree is.
  bool Before(ProcessId first, uint64_t at_ns, ProcessId then,
              uint64_t then_ns) const;

 private:
  struct Node {
    uint64_t end_ns;  // the largest number: no process can have waited for it
    ProcessId jump;   // some process above, so that few steps lead far
    uint32_t depth;
    uint32_t outlived;  // of it and all above: how many outlived their parents
  };

  ProcessId Up(ProcessId id) const { return graph_.processes()[id].parent; }
  // The topmost of `id` and those above it that `other` is not below of.
  ProcessId TopWithout(ProcessId id, ProcessId other) const;

  const BuildGraph& graph_;
  std::vector<Node> nodes_;  // by process
};

}  // namespace tracefs::build
