#include "tracefs/build/process_order.h"

#include <algorithm>

namespace tracefs::build {

ProcessOrder::ProcessOrder(const BuildGraph& graph)
    : graph_(graph), nodes_(graph.processes().size()) {
  const std::vector<GraphProcess>& processes = graph.processes();
  for (ProcessId id = 0; id < nodes_.size(); ++id) {
    const GraphProcess& process = processes[id];
    const bool lives_on = process.recorded && !process.ended;
    nodes_[id].end_ns = lives_on ? UINT64_MAX : process.end_ns;
  }
  // From below: one whose end is not known for sure ends after its children.
  const std::vector<ProcessId>& walk = graph.Walk();
  for (auto at = walk.rbegin(); at != walk.rend(); ++at) {
    const ProcessId id = *at;
    const ProcessId parent = Up(id);
    if (parent == kNobody) continue;
    const GraphProcess& above = processes[parent];
    if (above.recorded && !above.late_end) continue;
    nodes_[parent].end_ns = std::max(nodes_[parent].end_ns, nodes_[id].end_ns);
  }
  for (const ProcessId id : graph.Walk()) {
    Node& node = nodes_[id];
    const ProcessId parent = Up(id);
    if (parent == kNobody) {
      node.jump = id;
      node.depth = node.outlived = 0;
      continue;
    }
    const Node& above = nodes_[parent];
    node.depth = above.depth + 1;
    node.outlived = above.outlived + (node.end_ns > above.end_ns ? 1 : 0);
    // Two jumps of one length make one of the next.
    const Node& far = nodes_[above.jump];
    const bool equal =
        above.depth - far.depth == far.depth - nodes_[far.jump].depth;
    node.jump = equal ? far.jump : parent;
  }
}

ProcessId ProcessOrder::TopWithout(ProcessId id, ProcessId other) const {
  for (;;) {
    const ProcessId parent = Up(id);
    if (parent == kNobody || graph_.IsInSubtree(other, parent)) return id;
    const ProcessId jump = nodes_[id].jump;
    id = graph_.IsInSubtree(other, jump) ? parent : jump;
  }
}

bool ProcessOrder::Before(ProcessId first, uint64_t at_ns, ProcessId then,
                          uint64_t then_ns) const {
  if (first == then) return true;
  uint64_t begin_ns = then_ns;
  if (!graph_.IsInSubtree(first, then)) {
    const ProcessId branch = TopWithout(then, first);
    begin_ns = graph_.processes()[branch].begin_ns;
  }
  if (graph_.IsInSubtree(then, first)) return at_ns <= begin_ns;
  // It and all above it up to there have to end one after the other.
  const ProcessId branch = TopWithout(first, then);
  return nodes_[first].outlived == nodes_[branch].outlived &&
         nodes_[branch].end_ns <= begin_ns;
}

}  // namespace tracefs::build
