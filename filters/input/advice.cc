#include "filters/input/advice.h"

#include <fcntl.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "filters/input/ops_with.h"
#include "tracefs/base/units.h"
#include "tracefs/event/op.h"

namespace tracefs {
namespace {

// TASK_COMM_LEN without its zero byte.
constexpr size_t kMaxCommandBytes = 15;
// Somebody who writes less than a millisecond as a bare number meant another
// unit.
constexpr uint64_t kLeastBareNs = 1'000'000;
// An AND of more than this was written by a program.
constexpr size_t kMaxPartsLookedAt = 1000;

// What a pattern matches at least: bytes, and whether that is all it matches.
struct PatternReach {
  size_t least_bytes = 0;
  std::string literal;  // up to the first wild card
};

PatternReach ReachOf(std::string_view pattern) {
  PatternReach reach;
  bool literal = true;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '*') {
      literal = false;
      continue;
    }
    ++reach.least_bytes;
    if (c == '[') {
      literal = false;
      // A ']' that comes first is itself.
      size_t end = i + 1;
      if (end < pattern.size() && (pattern[end] == '!' || pattern[end] == '^'))
        ++end;
      end = pattern.find(']', end + 1);
      if (end == std::string_view::npos) break;
      i = end;
      continue;
    }
    if (c == '?') literal = false;
    if (c == '\\' && i + 1 < pattern.size()) ++i;
    if (literal) reach.literal += pattern[i];
  }
  return reach;
}

// Whether a pattern of a path can match a text that begins with '/'.
bool CanBeginWithSlash(std::string_view pattern) {
  const size_t stars = std::min(pattern.find_first_not_of('*'), pattern.size());
  if (stars >= 2) return true;
  if (stars == pattern.size()) return false;  // "*": no '/'
  pattern.remove_prefix(stars);
  return pattern[0] == '/' || pattern.starts_with("\\/");
}

// Flags that the requests of the operation never carry: the kernel takes them
// off before it tells (linux/fs/fuse/file.c, fuse_send_open; linux/fs/open.c,
// do_dentry_open).
uint64_t FlagsNeverOf(Op op) {
  constexpr uint64_t kOfCreation = O_CREAT | O_EXCL | O_NOCTTY;
  if (op == Op::open_ || op == Op::opendir_) return kOfCreation;
  return Info(op).flags == OpFlags::kOpened ? kOfCreation | O_TRUNC : 0;
}

// Whether a request of one of the operations may have such flags.
bool MayHaveFlags(uint64_t ops, const IntervalSet& flags) {
  for (const Interval& i : flags.intervals()) {
    if (i.first != i.last) return true;  // more than such words say
    for (size_t op = 0; op < kOpCount; ++op) {
      if ((ops >> op & 1) != 0 &&
          (i.first & FlagsNeverOf(static_cast<Op>(op))) == 0) {
        return true;
      }
    }
  }
  return flags.empty();
}

class Adviser {
 public:
  explicit Adviser(std::string_view file) : file_(file) {}

  void Look(const Ast& ast, const CheckedFilter& checked) {
    if (ast.kind == Ast::Kind::kPredicate) {
      // "cname = unknown" became a negation.
      if (checked.kind == Ast::Kind::kPredicate) {
        LookAtPredicate(ast.predicate, checked.predicate);
      }
    }
    for (size_t i = 0; i < ast.children.size(); ++i) {
      Look(ast.children[i], checked.children[i]);
    }
    if (ast.kind == Ast::Kind::kAnd) LookAtAnd(ast, checked);
  }

  std::vector<std::string> Take() {
    std::stable_sort(said_.begin(), said_.end(),
                     [](const Said& a, const Said& b) {
                       return std::tie(a.position.line, a.position.column) <
                              std::tie(b.position.line, b.position.column);
                     });
    std::vector<std::string> texts;
    for (const Said& one : said_) {
      texts.push_back(ErrorAt(file_, one.position, one.text).message());
      if (texts.size() == kMaxAdvice) break;
    }
    return texts;
  }

 private:
  struct Said {
    SourcePosition position;
    std::string text;
  };

  void Say(SourcePosition position, std::string text) {
    said_.push_back({position, std::move(text)});
  }

  // --- One predicate.

  void LookAtPredicate(const AstPredicate& ast, const Predicate& predicate) {
    switch (predicate.field) {
      case Field::kPath:
      case Field::kFirstPath:
      case Field::kNewPath:
        if (ast.comparison == Comparison::kMatch) LookAtPath(ast);
        break;
      case Field::kComm:
        LookAtCommand(ast);
        break;
      case Field::kLatency:
        LookAtLatency(ast);
        break;
      case Field::kResult:
        LookAtResult(ast, predicate);
        break;
      default:
        break;
    }
  }

  void LookAtPath(const AstPredicate& ast) {
    const AstWord& word = ast.values[0].words[0];
    if (CanBeginWithSlash(word.text)) return;
    const bool name = word.text.find('/') == std::string::npos;
    Say(word.position,
        Quoted(word.text) +
            " matches no path: a path begins with '/', which neither * nor ? "
            "nor [ ] match; did you mean " +
            (name ? "name ~ " + word.text + " or " : std::string()) +
            "path ~ **/" + word.text + "?");
  }

  void LookAtCommand(const AstPredicate& ast) {
    if (ast.comparison == Comparison::kNotEqual) return;
    const bool glob = ast.comparison == Comparison::kMatch;
    for (const AstValue& value : ast.values) {
      const AstWord& word = value.words[0];
      const PatternReach reach =
          glob ? ReachOf(word.text)
               : PatternReach{.least_bytes = word.text.size(),
                              .literal = word.text};
      if (reach.least_bytes <= kMaxCommandBytes) continue;
      std::string text = Quoted(word.text) +
                         " is longer than the 15 bytes that the kernel "
                         "keeps of a program's name";
      if (reach.literal.size() >= kMaxCommandBytes) {
        text += "; did you mean " +
                Quoted(reach.literal.substr(0, kMaxCommandBytes)) + "?";
      }
      Say(word.position, std::move(text));
    }
  }

  void LookAtLatency(const AstPredicate& ast) {
    for (const AstValue& value : ast.values) {
      const AstWord& word = value.words[0];
      const std::optional<uint64_t> number = ParseUnsigned(word.text);
      if (!number || *number == 0 || *number >= kLeastBareNs) continue;
      Say(word.position,
          Quoted(word.text) +
              " has no unit and means nanoseconds; did you mean " + word.text +
              "ms? (ns us ms s m h)");
    }
  }

  // The kernel's own convention, -ENOENT, is not that of system calls.
  void LookAtResult(const AstPredicate& ast, const Predicate& predicate) {
    const uint64_t bias = OrderBias(Field::kResult);
    const auto in_order = [bias](int64_t v) {
      return static_cast<uint64_t>(v) ^ bias;
    };
    const IntervalSet possible =
        IntervalSet::Range(in_order(-1), IntervalSet::kMax);
    if (!predicate.set.Intersect(possible).empty()) return;
    Say(ast.values[0].words[0].position,
        "the result of what fails is -1, whatever the error; did you mean "
        "errno = ENOENT and the like?");
  }

  // --- Several that must all be true.

  struct Group {
    const Ast* first = nullptr;
    IntervalSet set;
    std::vector<std::string> texts;
    bool said = false;
  };

  void Contradicts(const Ast& later, Group* group) {
    if (std::exchange(group->said, true)) return;
    Say(PositionOf(later), "nothing satisfies both " + Quoted(Dump(later)) +
                               " and " + Quoted(Dump(*group->first)) +
                               "; did you mean OR?");
  }

  static SourcePosition PositionOf(const Ast& ast) {
    return ast.kind == Ast::Kind::kNot
               ? ast.children[0].predicate.field.position
               : ast.predicate.field.position;
  }

  void LookAtAnd(const Ast& ast, const CheckedFilter& checked) {
    std::map<std::pair<Field, uint64_t>, Group> numbers;
    Group commands;
    Group ops;
    uint64_t ops_left = kAllOps;
    const size_t parts = std::min(ast.children.size(), kMaxPartsLookedAt);
    for (size_t i = 0; i < parts; ++i) {
      const Ast& part = ast.children[i];
      const bool negated = part.kind == Ast::Kind::kNot;
      if (!negated && part.kind != Ast::Kind::kPredicate) continue;
      const CheckedFilter& one =
          negated ? checked.children[i].children[0] : checked.children[i];
      if (one.kind != Ast::Kind::kPredicate) continue;
      const Predicate& p = one.predicate;
      switch (p.form) {
        case Predicate::Form::kOps:
          ops_left &= negated ? ~p.ops : p.ops;
          if (ops.first == nullptr) ops.first = &part;
          if (ops_left == 0) Contradicts(part, &ops);
          break;
        case Predicate::Form::kNumber:
          // A copy has two inodes, and either satisfies.
          if (p.field == Field::kInode) break;
          Narrow(part, negated ? p.set.Complement() : p.set,
                 &numbers[{p.field, p.mask}]);
          break;
        case Predicate::Form::kText:
          // A process has one name; files may have several.
          if (p.field == Field::kComm && !negated &&
              p.text.kind == TextMatch::Kind::kAnyOf) {
            Narrow(part, p.text.texts, &commands);
          }
          break;
      }
    }
    LookAtOutcome(numbers);
    if (ops.said) return;
    for (size_t i = 0; i < parts; ++i) {
      const Ast& part = ast.children[i];
      if (part.kind != Ast::Kind::kPredicate) continue;
      const Predicate& p = checked.children[i].predicate;
      if (p.form == Predicate::Form::kOps) continue;
      const uint64_t left = ops_left & OpsWith(p.field);
      if (left != 0) {
        if (p.field == Field::kFlags && !MayHaveFlags(left, p.set)) {
          Say(PositionOf(part),
              "no operation that the rest lets through has such flags: the "
              "kernel tells O_CREAT O_EXCL O_NOCTTY only when it creates, "
              "O_TRUNC only when it opens");
        }
        continue;
      }
      Say(PositionOf(part),
          "none of the operations that the rest lets through has " +
              Quoted(Info(p.field).predicate));
    }
  }

  void Narrow(const Ast& part, const IntervalSet& set, Group* group) {
    if (group->first == nullptr) {
      group->first = &part;
      group->set = set;
      return;
    }
    group->set = group->set.Intersect(set);
    if (group->set.empty()) Contradicts(part, group);
  }

  void Narrow(const Ast& part, const std::vector<std::string>& texts,
              Group* group) {
    if (group->first == nullptr) {
      group->first = &part;
      group->texts = texts;
      return;
    }
    std::vector<std::string> both;
    std::set_intersection(group->texts.begin(), group->texts.end(),
                          texts.begin(), texts.end(), std::back_inserter(both));
    group->texts = std::move(both);
    if (group->texts.empty()) Contradicts(part, group);
  }

  // An operation has an error or a result, not both.
  void LookAtOutcome(
      const std::map<std::pair<Field, uint64_t>, Group>& numbers) {
    const auto errors = numbers.find({Field::kErrno, IntervalSet::kMax});
    const auto results = numbers.find({Field::kResult, IntervalSet::kMax});
    if (errors == numbers.end() || results == numbers.end()) return;
    const IntervalSet& error = errors->second.set;
    const IntervalSet& result = results->second.set;
    if (error.empty() || result.empty()) return;
    const uint64_t zero = OrderBias(Field::kResult);
    const bool success =
        error.Contains(0) &&
        !result.Intersect(IntervalSet::Range(zero, IntervalSet::kMax)).empty();
    const bool failure =
        !error.Minus(IntervalSet::Of(0)).empty() && result.Contains(zero - 1);
    if (success || failure) return;
    Group group;
    group.first = errors->second.first;
    Contradicts(*results->second.first, &group);
  }

  const std::string_view file_;
  std::vector<Said> said_;
};

}  // namespace

std::vector<std::string> AdviseOn(const Ast& ast, const CheckedFilter& checked,
                                  std::string_view file) {
  Adviser adviser(file);
  adviser.Look(ast, checked);
  return adviser.Take();
}

}  // namespace tracefs
