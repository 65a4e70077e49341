#include "filters/input/graph.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace tracefs {
namespace {

using Form = FilterTest::Form;

// Bounds on the search for what is known, so that a large filter compiles in
// time proportional to its size: facts looked at for one test, of which on the
// same field, intervals a set may have, steps to find common facts, undecided
// tests to look behind, and passes.
constexpr size_t kMaxFacts = 32;
constexpr size_t kMaxFactsOnField = 4;
constexpr size_t kMaxIntervals = 16;
constexpr size_t kMaxSteps = 256;
constexpr int kLookahead = 1;
constexpr int kMaxPasses = 3;

bool IsSubset(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  return std::includes(b.begin(), b.end(), a.begin(), a.end());
}

bool OnSameField(const FilterTest& a, const FilterTest& b) {
  return a.form == b.form && a.field == b.field && a.mask == b.mask;
}

// What outcomes of tests on one field say about another test on it.
class FieldKnowledge {
 public:
  explicit FieldKnowledge(const FilterTest& asked) : asked_(asked) {}

  void Add(const FilterTest& test, bool outcome) {
    switch (test.form) {
      case Form::kOps:
        ops_ &= outcome ? test.ops : ~test.ops;
        break;
      case Form::kNumber:
        if (test.set.intervals().size() > kMaxIntervals) break;
        if (outcome) {
          present_ = true;
          within_ = within_.Intersect(test.set);
        } else {
          outside_ = outside_.Union(test.set);
        }
        break;
      default:
        // A test for "any of these names": more names only help.
        if (outcome && IsSubset(test.any, asked_.any)) known_ = true;
        if (!outcome && IsSubset(asked_.any, test.any)) known_ = false;
    }
  }

  std::optional<bool> Answer() const {
    switch (asked_.form) {
      case Form::kOps:
        if ((ops_ & asked_.ops) == 0) return false;
        if ((ops_ & ~asked_.ops) == 0) return true;
        return std::nullopt;
      case Form::kNumber: {
        if (asked_.set.intervals().size() > kMaxIntervals) return std::nullopt;
        if (!present_) {
          if (asked_.set.IsSubsetOf(outside_)) return false;
          return std::nullopt;
        }
        const IntervalSet left = within_.Minus(outside_);
        if (left.IsSubsetOf(asked_.set)) return true;
        if (left.Intersect(asked_.set).empty()) return false;
        return std::nullopt;
      }
      default:
        return known_;
    }
  }

 private:
  const FilterTest& asked_;
  uint64_t ops_ = kAllOps;
  bool present_ = false;
  IntervalSet within_ = IntervalSet::All();
  IntervalSet outside_;
  std::optional<bool> known_;
};

}  // namespace

FilterGraph::FilterGraph(const Simplifier& tests, uint32_t formula)
    : tests_(tests), vertices_(2) {
  root_ = Emit(formula, kKeep, kDrop);
  for (int pass = 0; pass < kMaxPasses && Optimise(); ++pass) {
  }
}

uint32_t FilterGraph::Emit(uint32_t formula, uint32_t yes, uint32_t no) {
  const Formula& f = tests_.formula(formula);
  switch (f.kind) {
    case Formula::Kind::kFalse:
      return no;
    case Formula::Kind::kTrue:
      return yes;
    case Formula::Kind::kLiteral:
      if (f.literal.negated) std::swap(yes, no);
      return MakeVertex(f.literal.test, yes, no);
    case Formula::Kind::kAnd:
    case Formula::Kind::kOr:
      break;
  }
  // From the last operand to the first: each leads on to the next one, or
  // short-circuits.
  const bool is_and = f.kind == Formula::Kind::kAnd;
  uint32_t next = is_and ? yes : no;
  for (auto child = f.children.rbegin(); child != f.children.rend(); ++child) {
    next = is_and ? Emit(*child, next, no) : Emit(*child, yes, next);
  }
  return next;
}

uint32_t FilterGraph::MakeVertex(uint32_t test, uint32_t yes, uint32_t no) {
  if (yes == no) return yes;
  const auto [at, added] = ids_.try_emplace(
      {test, yes, no}, static_cast<uint32_t>(vertices_.size()));
  if (added) vertices_.push_back({test, yes, no});
  return at->second;
}

bool FilterGraph::Optimise() {
  if (!ThreadJumps()) return false;
  Reduce();
  return true;
}

// As BPF's optimiser does: where an edge's own test and those before it decide
// the test it leads to, the edge goes straight on to that test's outcome.
bool FilterGraph::ThreadJumps() {
  constexpr uint32_t kUnreached = std::numeric_limits<uint32_t>::max();
  facts_.assign(1, {});
  std::vector<uint32_t> known(vertices_.size(), kUnreached);
  if (root_ > kKeep) known[root_] = 0;
  bool changed = false;
  for (uint32_t id = root_; id > kKeep; --id) {  // children are smaller
    if (known[id] == kUnreached) continue;
    for (const bool outcome : {true, false}) {
      Vertex& vertex = vertices_[id];
      uint32_t& edge = outcome ? vertex.yes : vertex.no;
      const uint32_t facts = AddFact(vertex.test, outcome, known[id]);
      const uint32_t destination = Destination(edge, facts, kLookahead);
      changed |= destination != edge;
      edge = destination;
      if (edge > kKeep) {
        known[edge] =
            known[edge] == kUnreached ? facts : Common(known[edge], facts);
      }
    }
  }
  return changed;
}

uint32_t FilterGraph::Destination(uint32_t target, uint32_t facts, int depth) {
  while (target > kKeep) {
    const Vertex vertex = vertices_[target];
    if (const auto answer = Known(vertex.test, facts)) {
      target = *answer ? vertex.yes : vertex.no;
      continue;
    }
    if (depth == 0) break;
    // Not decided, but it may not matter: both outcomes may lead to the same.
    const size_t mark = facts_.size();
    const uint32_t yes =
        Destination(vertex.yes, AddFact(vertex.test, true, facts), depth - 1);
    const uint32_t no =
        Destination(vertex.no, AddFact(vertex.test, false, facts), depth - 1);
    facts_.resize(mark);
    if (yes != no) break;
    target = yes;
  }
  return target;
}

uint32_t FilterGraph::AddFact(uint32_t test, bool outcome, uint32_t before) {
  facts_.push_back({test, outcome, before, facts_[before].depth + 1});
  return static_cast<uint32_t>(facts_.size() - 1);
}

// Rebuilds the graph from its terminals: equal vertices become one, those with
// equal edges and those that nothing leads to vanish.
void FilterGraph::Reduce() {
  const std::vector<Vertex> old = std::exchange(vertices_, {});
  std::vector<bool> reached(old.size());
  reached[root_] = true;
  for (uint32_t id = root_; id > kKeep; --id) {
    if (!reached[id]) continue;
    reached[old[id].yes] = true;
    reached[old[id].no] = true;
  }
  vertices_.resize(2);
  ids_.clear();
  std::vector<uint32_t> renamed(old.size());
  renamed[kKeep] = kKeep;
  for (uint32_t id = kKeep + 1; id <= root_; ++id) {
    if (!reached[id]) continue;
    renamed[id] =
        MakeVertex(old[id].test, renamed[old[id].yes], renamed[old[id].no]);
  }
  root_ = renamed[root_];
}

uint32_t FilterGraph::Common(uint32_t a, uint32_t b) const {
  for (size_t step = 0; step < kMaxSteps; ++step) {
    if (a == b) return a;
    if (facts_[a].depth >= facts_[b].depth) {
      a = facts_[a].before;
    } else {
      b = facts_[b].before;
    }
  }
  return 0;
}

std::optional<bool> FilterGraph::Known(uint32_t test, uint32_t facts) const {
  const FilterTest& asked = tests_.test(test);
  FieldKnowledge knowledge(asked);
  size_t on_field = 0;
  for (size_t i = 0; i < kMaxFacts && facts != 0 && on_field < kMaxFactsOnField;
       ++i, facts = facts_[facts].before) {
    const Fact& fact = facts_[facts];
    if (fact.test == test) return fact.outcome;
    const FilterTest& other = tests_.test(fact.test);
    if (!OnSameField(asked, other)) continue;
    knowledge.Add(other, fact.outcome);
    ++on_field;
  }
  if (on_field == 0) return std::nullopt;
  return knowledge.Answer();
}

std::vector<uint32_t> FilterGraph::Layout() const {
  // The longest way from each vertex to a terminal.
  std::vector<uint32_t> height(vertices_.size());
  for (size_t id = kKeep + 1; id < vertices_.size(); ++id) {
    height[id] =
        1 + std::max(height[vertices_[id].yes], height[vertices_[id].no]);
  }
  // Reverse postorder, without recursion: the way may be long. The child
  // visited last comes right behind its parent.
  std::vector<uint32_t> order;
  std::vector<bool> entered(vertices_.size());
  std::vector<std::pair<uint32_t, int>> stack;  // vertex, children visited
  const auto enter = [&](uint32_t id) {
    if (id <= kKeep || entered[id]) return;
    entered[id] = true;
    stack.emplace_back(id, 0);
  };
  enter(root_);
  while (!stack.empty()) {
    auto& [id, visited] = stack.back();
    const Vertex& vertex = vertices_[id];
    const bool yes_is_longer = height[vertex.yes] >= height[vertex.no];
    if (visited == 2) {
      order.push_back(id);
      stack.pop_back();
    } else if (visited++ == 0) {
      enter(yes_is_longer ? vertex.no : vertex.yes);
    } else {
      enter(yes_is_longer ? vertex.yes : vertex.no);
    }
  }
  std::reverse(order.begin(), order.end());
  bool drops = root_ == kDrop;
  bool keeps = root_ == kKeep;
  for (const uint32_t id : order) {
    drops |= vertices_[id].yes == kDrop || vertices_[id].no == kDrop;
    keeps |= vertices_[id].yes == kKeep || vertices_[id].no == kKeep;
  }
  if (drops) order.push_back(kDrop);
  if (keeps) order.push_back(kKeep);
  return order;
}

}  // namespace tracefs
