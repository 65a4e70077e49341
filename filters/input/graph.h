// The compiler's graph: a formula turned into tests with two edges each, equal
// nodes shared, and tests removed whose outcome is already known.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

#include "filters/input/simplify.h"

namespace tracefs {

// A reduced ordered graph in the manner of a decision diagram: a node's
// children have smaller numbers than the node.
class FilterGraph {
 public:
  static constexpr uint32_t kDrop = 0;
  static constexpr uint32_t kKeep = 1;

  struct Vertex {
    uint32_t test = 0;
    uint32_t yes = kDrop;
    uint32_t no = kDrop;
  };

  // `tests` must outlive the graph.
  FilterGraph(const Simplifier& tests, uint32_t formula);

  uint32_t root() const { return root_; }
  const Vertex& vertex(uint32_t id) const { return vertices_[id]; }

  // The vertices in the order of a program: the root first, edges forward, and
  // next to each vertex, where possible, the child with the longer way to go.
  // Terminals last, those that can be reached.
  std::vector<uint32_t> Layout() const;

 private:
  // What is known on every way to a vertex: outcomes of tests before it, the
  // latest first. A list that shares its tails; 0 is the empty one.
  struct Fact {
    uint32_t test = 0;
    bool outcome = false;
    uint32_t before = 0;
    uint32_t depth = 0;
  };

  uint32_t Emit(uint32_t formula, uint32_t yes, uint32_t no);
  uint32_t MakeVertex(uint32_t test, uint32_t yes, uint32_t no);
  // One pass of ThreadJumps and Reduce; false if nothing changed.
  bool Optimise();
  bool ThreadJumps();
  void Reduce();
  // Where an edge to `target` may lead instead, if `facts` hold; `depth` tests
  // that are not decided are looked behind.
  uint32_t Destination(uint32_t target, uint32_t facts, int depth);
  uint32_t AddFact(uint32_t test, bool outcome, uint32_t before);
  // What both lists know.
  uint32_t Common(uint32_t a, uint32_t b) const;
  std::optional<bool> Known(uint32_t test, uint32_t facts) const;

  const Simplifier& tests_;
  std::vector<Vertex> vertices_;  // [0] and [1] are the terminals
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint32_t> ids_;
  std::vector<Fact> facts_;
  uint32_t root_ = kDrop;
};

}  // namespace tracefs
