// A compiled filter: a directed acyclic graph of simple tests in one array,
// and the loop that runs it.
//
// The array is the paper's (section 2.2): topologically sorted, the root first,
// every edge leads forward, the two terminals last. So it can be checked
// completely before it is used, and running it ends. An edge that leads to the
// next node of the array costs nothing; the compiler lays nodes out for that.
//
// Tested by tests/unit/filters/input/program_test.cc and oracle_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "filters/input/interval_set.h"
#include "filters/input/text_matcher.h"
#include "tracefs/base/status.h"
#include "tracefs/event/event.h"
#include "tracefs/event/field.h"
#include "tracefs/event/verdict.h"

namespace tracefs {

enum class NodeKind : uint8_t {
  // The event has the numeric field, and with v = value & mask:
  kRange,   // v - lo <= span, modulo 2^64
  kBitmap,  // v - lo < 64, and that bit of `span` is set
  kTable,   // v ^ span lies in the interval set number `lo`
  // Others; they have field 0.
  kOps,  // bit `op` of `mask` is set
  // Some name of the file satisfies some predicate of the list number `span`:
  kNames,       // by Event::name_bits & mask, right since generation `lo`
  kNameList,    // by the names themselves
  kCallerName,  // the caller's name satisfies one of the list number `span`
  kPath,        // likewise the path or the new path
  kDetail,      // likewise a text of CallerDetails: that of the list's field
  kAncestor,    // likewise the number or the name of an ancestor of the caller
  // Terminals.
  kDrop,
  kKeep,
};

struct Node {
  uint64_t mask = 0;
  uint64_t lo = 0;
  uint64_t span = 0;
  NodeKind kind{};
  uint8_t field = 0;
  // For kRange: the outcome, 0 or 1, that goes on to the array's next node.
  // kNoFall where neither does, and of every other kind: the loop that runs
  // ranges meets it as an outcome that never comes true, and only then looks at
  // the kind.
  uint8_t falls = kNoFall;
  uint8_t fetched = 0;  // where the field has to be fetched from: kFrom… or 0
  uint16_t yes = 0;
  uint16_t no = 0;

  static constexpr uint8_t kNoFall = 2;
  static constexpr uint8_t kFromCaller = 1;
  static constexpr uint8_t kFromAttributes = 2;
  static constexpr uint8_t kFromCalls = 3;

  friend bool operator==(const Node&, const Node&) = default;
};
static_assert(sizeof(Node) == 32 && std::is_trivially_copyable_v<Node>);

// Node::fetched for a field.
uint8_t FetchedFrom(Field field);

// What nodes refer to by number; shared by the programs of a filter.
struct ProgramData {
  std::vector<IntervalSet> tables;
  // Each list: predicates on name and ext, or all on one other field.
  std::vector<std::vector<std::shared_ptr<const TextMatcher>>> texts;
};

// Immutable; threads: any.
class Program {
 public:
  static constexpr size_t kMaxNodes = 65535;

  // Checks `nodes` and takes them. kInvalid says which node is wrong how.
  static Result<Program> Make(std::vector<Node> nodes,
                              std::shared_ptr<const ProgramData> data);

  // Whether `nodes` is a program: known kinds and fields, numbers in range,
  // edges forward, all nodes reachable, one or two terminals, at the end. Any
  // bytes may be in `nodes`.
  static Status Validate(std::span<const Node> nodes, const ProgramData& data);

  // The answer when everything about the event is known. Fetches the caller or
  // the attributes only if a node that needs them is reached. No lock and no
  // allocation of its own.
  bool Keep(Event& event) const;

  // The answer while the operation has not run. Results and attributes that
  // the event does not have are unknown, and so are inode, type and other names
  // of a file that the operation is only about to find or make; kUndecided if
  // both answers can be reached.
  Verdict DecideEarly(Event& event) const;

  // The answer for all operations of kind event.op through a handle that is
  // about to be opened: only inode, type, names and path of the file are known,
  // because callers and arguments may differ from one to the next.
  Verdict DecideForFile(Event& event) const;

  // What Keep has to look at for this operation. If `late` is false, then
  // DecideEarly always decides.
  FilterNeeds Needs(Op op) const;

  std::span<const Node> nodes() const { return nodes_; }

  // One line a node: "0: op = write ? 1 : 3".
  std::string Dump() const;
  // The same as a Graphviz graph.
  std::string DumpDot(std::string_view title) const;

 private:
  Program(std::vector<Node> nodes, std::shared_ptr<const ProgramData> data);

  enum class Truth : uint8_t { kFalse, kTrue, kUnknown };
  // No event has this one.
  static constexpr uint64_t kReadsPaths = uint64_t{1} << 63;
  static_assert(kNumericFieldCount < 64);

  // Paths are put together on the stack, at most once a run.
  struct PathCache;

  bool KeepInline(const Node* node, Event& event) const;
  bool KeepFrom(const Node* node, Event& event) const;
  bool KeepCarefully(const Node* node, Event& event, PathCache* paths) const;
  bool KeepSlowly(Event& event) const;
  bool Test(const Node& node, Event& event, PathCache* paths) const;
  Truth TestEarly(const Node& node, Event& event, PathCache* paths) const;
  Truth TestForFile(const Node& node, Event& event, PathCache* paths) const;
  using PartialTest = Truth (Program::*)(const Node&, Event&, PathCache*) const;
  Verdict DecidePartly(PartialTest test, Event& event) const;
  Verdict DecidePartlyFrom(size_t node, PartialTest test, Event& event,
                           PathCache* paths) const;
  bool TestNames(size_t list, const Event& event) const;
  bool TestDetail(size_t list, Event& event) const;
  bool TestAncestors(size_t list, Event& event) const;
  bool TestPath(size_t list, Event& event, PathCache* paths) const;
  std::string NodeText(const Node& node) const;

  std::vector<Node> nodes_;
  std::shared_ptr<const ProgramData> data_;
  // Bits of the fields that are read, and kReadsPaths: an event that has them
  // all can be run without looking what it has.
  uint64_t required_ = 0;
};

}  // namespace tracefs
