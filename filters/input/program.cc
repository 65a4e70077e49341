// Checking and running programs. How they are printed is in dump.cc.
#include "filters/input/program.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

namespace tracefs {
namespace {

Field FieldOf(const Node& node) { return static_cast<Field>(node.field); }

bool IsNumber(NodeKind kind) {
  return kind == NodeKind::kRange || kind == NodeKind::kBitmap ||
         kind == NodeKind::kTable;
}

bool IsNames(NodeKind kind) {
  return kind == NodeKind::kNames || kind == NodeKind::kNameList;
}

bool IsPath(Field field) {
  return field == Field::kPath || field == Field::kFirstPath ||
         field == Field::kNewPath;
}

bool IsTerminal(NodeKind kind) {
  return kind == NodeKind::kDrop || kind == NodeKind::kKeep;
}

// Whether an event whose operation has not run may still get the field.
bool MayComeLate(Field field, Op op) {
  switch (Info(field).source) {
    case FieldSource::kResult:
    case FieldSource::kAttributes:
      return true;
    default:
      return (field == Field::kInode || field == Field::kType) && FindsFile(op);
  }
}

void Fetch(const Node& node, Event& event) {
  if (node.fetched == Node::kFromCaller) event.NeedCaller();
  if (node.fetched == Node::kFromAttributes) event.NeedAttributes();
  if (node.fetched == Node::kFromCalls) event.NeedSyscall();
}

bool InRange(const Node& node, const Event& event) {
  return (event.value[node.field] & node.mask) - node.lo <= node.span;
}

bool InBitmap(const Node& node, const Event& event) {
  const uint64_t bit = (event.value[node.field] & node.mask) - node.lo;
  return bit < 64 && (node.span >> bit & 1) != 0;
}

bool MatchesAny(
    const std::vector<std::shared_ptr<const TextMatcher>>& predicates,
    std::string_view text) {
  return std::any_of(predicates.begin(), predicates.end(),
                     [&](const auto& p) { return p->Matches(text); });
}

// --- Validate ---------------------------------------------------------------

// What is wrong with one test, or null.
const char* WrongTest(const Node& node, const ProgramData& data) {
  const auto list_of = [&](auto&& fits) {
    if (node.span >= data.texts.size()) return false;
    const auto& list = data.texts[node.span];
    return std::all_of(list.begin(), list.end(), [&](const auto& matcher) {
      return matcher != nullptr && fits(matcher->field());
    });
  };
  if (!IsNumber(node.kind) && (node.field != 0 || node.fetched != 0)) {
    return "has a field";
  }
  switch (node.kind) {
    case NodeKind::kRange:
    case NodeKind::kBitmap:
    case NodeKind::kTable: {
      if (node.field >= kNumericFieldCount) return "is on no numeric field";
      const FieldInfo& info = Info(FieldOf(node));
      if (info.predicate.empty()) {
        return "is on a field that is no predicate";
      }
      if (node.fetched != FetchedFrom(FieldOf(node))) {
        return "does not fetch its field as it should";
      }
      if (node.kind == NodeKind::kTable && node.lo >= data.tables.size()) {
        return "names no interval table";
      }
      return nullptr;
    }
    case NodeKind::kOps:
      return nullptr;
    case NodeKind::kNames:
    case NodeKind::kNameList:
      return list_of(
                 [](Field f) { return f == Field::kName || f == Field::kExt; })
                 ? nullptr
                 : "names no list of name predicates";
    case NodeKind::kCallerName:
      return list_of([](Field f) { return f == Field::kComm; })
                 ? nullptr
                 : "names no list of caller name predicates";
    case NodeKind::kPath:
      return node.span < data.texts.size() && !data.texts[node.span].empty() &&
                     list_of([&](Field f) {
                       return IsPath(f) &&
                              f == data.texts[node.span][0]->field();
                     })
                 ? nullptr
                 : "names no list of path predicates";
    case NodeKind::kDetail:
      return node.span < data.texts.size() && !data.texts[node.span].empty() &&
                     list_of([&](Field f) {
                       return Info(f).source == FieldSource::kDetails &&
                              f == data.texts[node.span][0]->field();
                     })
                 ? nullptr
                 : "names no list of predicates on the caller";
    case NodeKind::kAncestor:
      return list_of([](Field f) { return f == Field::kAncestor; })
                 ? nullptr
                 : "names no list of ancestor predicates";
    case NodeKind::kDrop:
    case NodeKind::kKeep:
      return nullptr;
  }
  return "is of no known kind";
}

const char* WrongEdges(std::span<const Node> nodes, size_t at) {
  const Node& node = nodes[at];
  if (node.yes <= at || node.no <= at) return "has an edge that leads back";
  if (node.yes >= nodes.size() || node.no >= nodes.size()) {
    return "has an edge that leads out";
  }
  if (node.falls == Node::kNoFall) return nullptr;
  if (node.falls > 1 || node.kind != NodeKind::kRange) {
    return "cannot fall through so";
  }
  if ((node.falls == 1 ? node.yes : node.no) != at + 1) {
    return "falls through to a node that is not the next";
  }
  return nullptr;
}

}  // namespace

uint8_t FetchedFrom(Field field) {
  switch (Info(field).source) {
    case FieldSource::kCaller:
      return Node::kFromCaller;
    case FieldSource::kAttributes:
      return Node::kFromAttributes;
    case FieldSource::kSyscall:
      return Node::kFromCalls;
    default:
      return 0;
  }
}

Status Program::Validate(std::span<const Node> nodes, const ProgramData& data) {
  if (nodes.empty()) return Status::Invalid("a program without nodes");
  if (nodes.size() > kMaxNodes) {
    return Status::Invalid("a program of more than " +
                           std::to_string(kMaxNodes) + " nodes");
  }
  const auto wrong = [](size_t at, std::string_view what) {
    return Status::Invalid("node " + std::to_string(at) + " " +
                           std::string(what));
  };
  // Terminals are the last one or two nodes, and differ.
  size_t tests = nodes.size();
  while (tests > 0 && IsTerminal(nodes[tests - 1].kind)) --tests;
  const size_t terminals = nodes.size() - tests;
  if (terminals == 0) return wrong(nodes.size() - 1, "is no terminal");
  if (terminals > 2 ||
      (terminals == 2 && nodes[tests].kind == nodes[tests + 1].kind)) {
    return wrong(nodes.size() - 1, "is one terminal too many");
  }
  std::vector<bool> reached(nodes.size());
  reached[0] = true;
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (!reached[i]) return wrong(i, "cannot be reached");
    if (i >= tests) {
      // The loop over ranges looks at a terminal's other fields first.
      if (nodes[i].field != 0 || nodes[i].falls != Node::kNoFall) {
        return wrong(i, "is a terminal with a test");
      }
      continue;
    }
    if (IsTerminal(nodes[i].kind)) {
      return wrong(i, "is a terminal before the end");
    }
    if (const char* what = WrongTest(nodes[i], data)) return wrong(i, what);
    if (const char* what = WrongEdges(nodes, i)) return wrong(i, what);
    reached[nodes[i].yes] = true;
    reached[nodes[i].no] = true;
  }
  return Status::Ok();
}

Result<Program> Program::Make(std::vector<Node> nodes,
                              std::shared_ptr<const ProgramData> data) {
  if (Status s = Validate(nodes, *data); !s.ok()) return s;
  return Program(std::move(nodes), std::move(data));
}

Program::Program(std::vector<Node> nodes,
                 std::shared_ptr<const ProgramData> data)
    : nodes_(std::move(nodes)), data_(std::move(data)) {
  nodes_.shrink_to_fit();
  // Nodes of other kinds read slot 0 on the way to their own test.
  required_ = Bit(static_cast<Field>(0));
  for (const Node& node : nodes_) {
    if (IsNumber(node.kind)) required_ |= Bit(FieldOf(node));
    if (node.kind == NodeKind::kPath) required_ |= kReadsPaths;
  }
}

// --- Run --------------------------------------------------------------------

struct Program::PathCache {
  bool known = false;
  std::string_view path;
  std::string_view new_path;
  PathBuffer path_bytes;
  PathBuffer new_path_bytes;
};

// The loop is written four times. Keep knows ranges and name bits, KeepInline
// everything that needs no call, KeepFrom everything; each hands on to the
// next, by a jump, at the first node it does not know. So a filter of ranges
// and name bits runs in a function that calls nothing and saves no register,
// and the others pay about a nanosecond to get to theirs. These three are for
// events that have all the fields; KeepCarefully is for the others.
//
// The first three treat every node as a range first: few instructions, and one
// branch that has to be predicted. The branch also cuts the chain of loads: the
// next node is read while this one is still being decided. A node of another
// kind has an impossible `falls`, and only then its kind is looked at.
bool Program::Keep(Event& event) const {
  // Nearly always so: the program is specialised to what the operation has.
  if ((event.present & required_) != required_) [[unlikely]] {
    return KeepSlowly(event);
  }
  const Node* const first = nodes_.data();
  const Node* node = first;
  for (;;) {
    const bool outcome = InRange(*node, event);
    if (outcome == node->falls) [[likely]] {
      ++node;
      continue;
    }
    // Keeps the compiler from loading for the branches below in the loop above.
    asm("" : "+r"(node));
    if (node->kind == NodeKind::kRange) {
      node = first + (outcome ? node->yes : node->no);
    } else if (node->kind == NodeKind::kNames &&
               event.name_generation >= node->lo) {
      const bool named = (event.name_bits & node->mask) != 0;
      node = first + (named ? node->yes : node->no);
    } else {
      break;
    }
  }
  if (IsTerminal(node->kind)) return node->kind == NodeKind::kKeep;
  return KeepInline(node, event);
}

[[gnu::noinline]] bool Program::KeepInline(const Node* node,
                                           Event& event) const {
  const Node* const first = nodes_.data();
  for (;;) {
    bool outcome = InRange(*node, event);
    if (outcome == node->falls) {
      ++node;
      continue;
    }
    asm("" : "+r"(node));
    if (node->kind == NodeKind::kBitmap) {
      outcome = InBitmap(*node, event);
    } else if (node->kind == NodeKind::kNames &&
               event.name_generation >= node->lo) {
      outcome = (event.name_bits & node->mask) != 0;
    } else if (IsTerminal(node->kind)) {
      return node->kind == NodeKind::kKeep;
    } else if (node->kind != NodeKind::kRange) {
      return KeepFrom(node, event);
    }
    node = first + (outcome ? node->yes : node->no);
  }
}

[[gnu::noinline]] bool Program::KeepFrom(const Node* node, Event& event) const {
  const Node* const first = nodes_.data();
  for (;;) {
    bool outcome = InRange(*node, event);
    if (outcome == node->falls) {
      ++node;
      continue;
    }
    if (node->kind != NodeKind::kRange) {
      if (IsTerminal(node->kind)) return node->kind == NodeKind::kKeep;
      outcome = Test(*node, event, nullptr);
    }
    node = first + (outcome ? node->yes : node->no);
  }
}

// Only a filter on paths pays for the frame that holds them.
[[gnu::noinline]] bool Program::KeepSlowly(Event& event) const {
  if ((required_ & kReadsPaths) == 0) {
    return KeepCarefully(nodes_.data(), event, nullptr);
  }
  PathCache paths;
  return KeepCarefully(nodes_.data(), event, &paths);
}

// Fetches what has to be fetched, when a node needs it.
inline bool Program::KeepCarefully(const Node* node, Event& event,
                                   PathCache* paths) const {
  const Node* const first = nodes_.data();
  for (;;) {
    bool outcome = false;
    if (IsTerminal(node->kind)) return node->kind == NodeKind::kKeep;
    if (node->kind == NodeKind::kRange && event.Has(FieldOf(*node))) {
      outcome = InRange(*node, event);
    } else {
      outcome = Test(*node, event, paths);
      // Perhaps nothing was missing but what this node has fetched.
      if (node->fetched != 0 && (event.present & required_) == required_) {
        return KeepInline(first + (outcome ? node->yes : node->no), event);
      }
    }
    node = first + (outcome ? node->yes : node->no);
  }
}

bool Program::Test(const Node& node, Event& event, PathCache* paths) const {
  switch (node.kind) {
    case NodeKind::kRange:
      Fetch(node, event);
      return event.Has(FieldOf(node)) && InRange(node, event);
    case NodeKind::kBitmap:
      Fetch(node, event);
      return event.Has(FieldOf(node)) && InBitmap(node, event);
    case NodeKind::kTable:
      Fetch(node, event);
      return event.Has(FieldOf(node)) &&
             data_->tables[node.lo].Contains(
                 (event.value[node.field] & node.mask) ^ node.span);
    case NodeKind::kOps:
      return (node.mask >> Index(event.op) & 1) != 0;
    case NodeKind::kNames:
      if (event.name_generation >= node.lo) {
        return (event.name_bits & node.mask) != 0;
      }
      return TestNames(node.span, event);
    case NodeKind::kNameList:
      return TestNames(node.span, event);
    case NodeKind::kCallerName:
      event.NeedCaller();
      return event.caller != nullptr &&
             MatchesAny(data_->texts[node.span], event.caller->comm());
    case NodeKind::kPath:
      return TestPath(node.span, event, paths);
    case NodeKind::kDetail:
      return TestDetail(node.span, event);
    case NodeKind::kAncestor:
      return TestAncestors(node.span, event);
    case NodeKind::kDrop:
    case NodeKind::kKeep:
      break;
  }
  return false;
}

bool Program::TestNames(size_t list, const Event& event) const {
  struct Search {
    const std::vector<std::shared_ptr<const TextMatcher>>& predicates;
    bool found = false;

    void Try(std::string_view name) {
      found = found || MatchesAny(predicates, name);
    }
  };
  Search search{data_->texts[list]};
  search.Try(event.name);
  search.Try(event.new_name);
  for (const uint64_t file : {event.node, event.second_file()}) {
    if (search.found || event.resolver == nullptr || file == 0) continue;
    event.resolver->ForEachName(file, &search,
                                [](void* context, std::string_view name) {
                                  static_cast<Search*>(context)->Try(name);
                                });
  }
  return search.found;
}

bool Program::TestDetail(size_t list, Event& event) const {
  event.NeedDetails();
  if (event.details == nullptr) return false;
  const auto& predicates = data_->texts[list];
  const std::string* const text = event.details->Find(predicates[0]->field());
  return text != nullptr && MatchesAny(predicates, *text);
}

bool Program::TestAncestors(size_t list, Event& event) const {
  event.NeedCaller();
  if (event.resolver == nullptr) return false;
  struct Search {
    const std::vector<std::shared_ptr<const TextMatcher>>& predicates;
    bool found = false;
    bool asks_if_known = false;
  };
  Search search{data_->texts[list]};
  search.asks_if_known = std::any_of(
      search.predicates.begin(), search.predicates.end(),
      [](const auto& p) { return p->match().kind == TextMatch::Kind::kKnown; });
  const bool whole = event.resolver->ForEachAncestor(
      event, &search, [](void* context, uint32_t pid, std::string_view comm) {
        auto* s = static_cast<Search*>(context);
        std::array<char, 12> number;
        const auto end =
            std::to_chars(number.data(), number.data() + number.size(), pid);
        const std::string_view text(
            number.data(), static_cast<size_t>(end.ptr - number.data()));
        for (const auto& p : s->predicates) {
          if (p->match().kind == TextMatch::Kind::kKnown) continue;
          s->found = s->found || p->Matches(text) || p->Matches(comm);
        }
        return !s->found;
      });
  return search.found || (search.asks_if_known && whole);
}

bool Program::TestPath(size_t list, Event& event, PathCache* paths) const {
  if (!paths->known) {
    paths->known = true;
    paths->path = PathOf(event, paths->path_bytes);
    paths->new_path = NewPathOf(event, paths->new_path_bytes);
  }
  const auto& predicates = data_->texts[list];
  const Field end = predicates[0]->field();
  return (end != Field::kNewPath && MatchesAny(predicates, paths->path)) ||
         (end != Field::kFirstPath && MatchesAny(predicates, paths->new_path));
}

// --- Early ------------------------------------------------------------------

Program::Truth Program::TestEarly(const Node& node, Event& event,
                                  PathCache* paths) const {
  if (IsNumber(node.kind)) {
    const Field field = FieldOf(node);
    // Attributes that are there already may be those of before the operation.
    const bool unknown =
        Info(field).source == FieldSource::kAttributes || !event.Has(field);
    if (unknown && MayComeLate(field, event.op)) return Truth::kUnknown;
  }
  if (Test(node, event, paths)) return Truth::kTrue;
  // The file may turn out to have other names than the operand.
  if (IsNames(node.kind) && event.node == 0 && FindsFile(event.op)) {
    return Truth::kUnknown;
  }
  return Truth::kFalse;
}

Program::Truth Program::TestForFile(const Node& node, Event& event,
                                    PathCache* paths) const {
  if (IsNumber(node.kind)) {
    const Field field = FieldOf(node);
    if ((field != Field::kInode && field != Field::kType &&
         field != Field::kMapped) ||
        !event.Has(field) || HasTwoFiles(event.op)) {
      return Truth::kUnknown;
    }
  }
  if (node.kind == NodeKind::kCallerName || node.kind == NodeKind::kDetail ||
      node.kind == NodeKind::kAncestor) {
    return Truth::kUnknown;
  }
  // No file: the question is what some file may be.
  if (event.node == 0 && (IsNames(node.kind) || node.kind == NodeKind::kPath)) {
    return Truth::kUnknown;
  }
  // It may be the source or the destination of a copy.
  const bool of_one_end = node.kind == NodeKind::kPath &&
                          data_->texts[node.span][0]->field() != Field::kPath;
  if (of_one_end && HasSecondPath(event.op)) return Truth::kUnknown;
  if (Test(node, event, paths)) return Truth::kTrue;
  const bool of_files = IsNames(node.kind) || node.kind == NodeKind::kPath;
  return of_files && HasTwoFiles(event.op) ? Truth::kUnknown : Truth::kFalse;
}

Verdict Program::DecideEarly(Event& event) const {
  return DecidePartly(&Program::TestEarly, event);
}

Verdict Program::DecideForFile(Event& event) const {
  return DecidePartly(&Program::TestForFile, event);
}

Verdict Program::DecidePartly(PartialTest test, Event& event) const {
  PathCache paths;
  for (size_t i = 0;;) {
    const Node& node = nodes_[i];
    if (IsTerminal(node.kind)) {
      return node.kind == NodeKind::kKeep ? Verdict::kKeep : Verdict::kDrop;
    }
    const Truth truth = (this->*test)(node, event, &paths);
    if (truth == Truth::kUnknown) {
      return DecidePartlyFrom(i, test, event, &paths);
    }
    i = truth == Truth::kTrue ? node.yes : node.no;
  }
}

// Follows both edges of tests whose outcome is unknown, all paths at once:
// edges lead forward, so one pass over the array sees every node after those
// that lead to it.
Verdict Program::DecidePartlyFrom(size_t start, PartialTest test, Event& event,
                                  PathCache* paths) const {
  std::array<uint64_t, kMaxNodes / 64 + 1> reached;
  std::fill_n(reached.begin(), nodes_.size() / 64 + 1, 0);
  const auto reach = [&](size_t i) {
    reached[i / 64] |= uint64_t{1} << (i % 64);
  };
  reach(start);
  bool keep = false;
  bool drop = false;
  for (size_t i = start; i < nodes_.size() && !(keep && drop); ++i) {
    if ((reached[i / 64] >> (i % 64) & 1) == 0) continue;
    const Node& node = nodes_[i];
    if (IsTerminal(node.kind)) {
      (node.kind == NodeKind::kKeep ? keep : drop) = true;
      continue;
    }
    const Truth truth = (this->*test)(node, event, paths);
    if (truth != Truth::kFalse) reach(node.yes);
    if (truth != Truth::kTrue) reach(node.no);
  }
  if (keep && drop) return Verdict::kUndecided;
  return keep ? Verdict::kKeep : Verdict::kDrop;
}

FilterNeeds Program::Needs(Op op) const {
  FilterNeeds needs;
  if (IsTerminal(nodes_[0].kind)) {
    needs.constant =
        nodes_[0].kind == NodeKind::kKeep ? Verdict::kKeep : Verdict::kDrop;
    return needs;
  }
  for (const Node& node : nodes_) {
    if (IsNumber(node.kind)) {
      const Field field = FieldOf(node);
      needs.caller |= Info(field).source == FieldSource::kCaller;
      needs.syscall |= Info(field).source == FieldSource::kSyscall;
      needs.late |= MayComeLate(field, op);
    } else if (IsNames(node.kind)) {
      needs.names |= node.kind == NodeKind::kNames;
      needs.late |= FindsFile(op);
    } else if (node.kind == NodeKind::kCallerName) {
      needs.caller = true;
    } else if (node.kind == NodeKind::kDetail) {
      needs.caller = needs.details = true;
    } else if (node.kind == NodeKind::kAncestor) {
      needs.caller = needs.ancestors = true;
    } else if (node.kind == NodeKind::kPath) {
      needs.paths = true;
    }
  }
  return needs;
}

}  // namespace tracefs
