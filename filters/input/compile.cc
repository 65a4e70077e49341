#include "filters/input/compile.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "filters/input/graph.h"
#include "filters/input/simplify.h"

namespace tracefs {
namespace {

// Turns graphs into arrays of nodes, and collects what the nodes refer to.
class Encoder {
 public:
  explicit Encoder(const Simplifier& tests) : tests_(tests) {}

  std::vector<Node> Encode(const FilterGraph& graph) {
    const std::vector<uint32_t> order = graph.Layout();
    std::map<uint32_t, uint16_t> position;
    for (size_t i = 0; i < order.size(); ++i) {
      position[order[i]] = static_cast<uint16_t>(i);
    }
    std::vector<Node> nodes;
    nodes.reserve(order.size());
    for (const uint32_t id : order) {
      if (id <= FilterGraph::kKeep) {
        nodes.emplace_back();
        nodes.back().kind =
            id == FilterGraph::kKeep ? NodeKind::kKeep : NodeKind::kDrop;
        continue;
      }
      const FilterGraph::Vertex& vertex = graph.vertex(id);
      Node node = TestNode(vertex.test);
      node.yes = position[vertex.yes];
      node.no = position[vertex.no];
      const size_t next = nodes.size() + 1;
      if (node.kind == NodeKind::kRange) {
        node.falls = node.yes == next ? 1 : node.no == next ? 0 : Node::kNoFall;
      }
      nodes.push_back(node);
    }
    return nodes;
  }

  ProgramData TakeData() { return std::move(data_); }

 private:
  static NodeKind TextKind(Field field) {
    switch (field) {
      case Field::kPath:
      case Field::kFirstPath:
      case Field::kNewPath:
        return NodeKind::kPath;
      case Field::kComm:
        return NodeKind::kCallerName;
      case Field::kAncestor:
        return NodeKind::kAncestor;
      default:
        return NodeKind::kDetail;
    }
  }

  // The test of a node, without its edges.
  Node TestNode(uint32_t id) {
    const auto known = nodes_.find(id);
    if (known != nodes_.end()) return known->second;
    const FilterTest& test = tests_.test(id);
    Node node;
    switch (test.form) {
      case FilterTest::Form::kOps:
        node.kind = NodeKind::kOps;
        node.mask = test.ops;
        break;
      case FilterTest::Form::kNumber:
        NumberNode(test, &node);
        break;
      case FilterTest::Form::kNames:
        node.kind = NodeKind::kNames;
        for (const uint32_t text : test.any) {
          node.mask |= tests_.texts()[text].bit;
          node.lo = std::max<uint64_t>(node.lo, tests_.texts()[text].since);
        }
        node.span = ListOf(test.any);
        break;
      case FilterTest::Form::kNameList:
        node.kind = NodeKind::kNameList;
        node.span = ListOf(test.any);
        break;
      case FilterTest::Form::kText:
        node.kind = TextKind(test.field);
        node.span = ListOf(test.any);
        break;
    }
    nodes_.emplace(id, node);
    return node;
  }

  void NumberNode(const FilterTest& test, Node* node) {
    const std::vector<Interval>& intervals = test.set.intervals();
    const uint64_t bias = OrderBias(test.field);
    node->fetched = FetchedFrom(test.field);
    node->field = static_cast<uint8_t>(test.field);
    node->mask = test.mask;
    const auto range = [&](uint64_t first, uint64_t last) {
      node->kind = NodeKind::kRange;
      node->lo = first ^ bias;  // the same as adding it
      node->span = last - first;
    };
    if (intervals.size() == 1) {
      return range(intervals[0].first, intervals[0].last);
    }
    const uint64_t first = intervals.front().first;
    const uint64_t last = intervals.back().last;
    // All but one interval in the middle is an interval around the end.
    if (intervals.size() == 2 && first == 0 && last == IntervalSet::kMax) {
      return range(intervals[1].first, intervals[0].last);
    }
    if (last - first < 64) {
      node->kind = NodeKind::kBitmap;
      node->lo = first ^ bias;
      for (const Interval& interval : intervals) {
        for (uint64_t v = interval.first - first; v <= interval.last - first;
             ++v) {
          node->span |= uint64_t{1} << v;
        }
      }
      return;
    }
    node->kind = NodeKind::kTable;
    node->lo = data_.tables.size();
    node->span = bias;
    data_.tables.push_back(test.set);
  }

  uint64_t ListOf(const std::vector<uint32_t>& texts) {
    const auto [at, added] = lists_.try_emplace(texts, data_.texts.size());
    if (added) {
      data_.texts.emplace_back();
      for (const uint32_t text : texts) {
        data_.texts.back().push_back(tests_.texts()[text].matcher);
      }
    }
    return at->second;
  }

  const Simplifier& tests_;
  ProgramData data_;
  std::map<uint32_t, Node> nodes_;  // of tests met before
  std::map<std::vector<uint32_t>, uint64_t> lists_;
};

}  // namespace

Result<CompiledFilter> CompileFilter(const CheckedFilter& filter,
                                     NameTable& names) {
  CompiledFilter compiled;
  Simplifier simplifier(filter, names);
  compiled.names = simplifier.TakeHandles();
  Encoder encoder(simplifier);
  std::vector<std::vector<Node>> arrays;
  const auto build = [&](std::optional<Op> op) {
    const FilterGraph graph(simplifier, simplifier.Build(op));
    arrays.push_back(encoder.Encode(graph));
  };
  build(std::nullopt);
  std::map<std::string, size_t> by_signature;
  std::array<size_t, kOpCount> array_of{};
  for (size_t i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    const auto [at, added] =
        by_signature.try_emplace(simplifier.Signature(op), arrays.size());
    if (added) build(op);
    array_of[i] = at->second;
  }
  const auto data = std::make_shared<const ProgramData>(encoder.TakeData());
  for (std::vector<Node>& nodes : arrays) {
    auto program = Program::Make(std::move(nodes), data);
    if (!program.ok()) {
      return program.status().Prefixed("the compiled filter is malformed");
    }
    compiled.programs.push_back(*std::move(program));
  }
  for (size_t i = 0; i < kOpCount; ++i) {
    compiled.program_of[i] = &compiled.programs[array_of[i]];
  }
  return compiled;
}

}  // namespace tracefs
