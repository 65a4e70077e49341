#include "filters/input/simplify.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>

#include "filters/input/ops_with.h"

namespace tracefs {
namespace {

constexpr uint32_t kFalse = 0;  // formulas every simplifier starts with
constexpr uint32_t kTrue = 1;

bool IsName(Field field) {
  return field == Field::kName || field == Field::kExt;
}

// Whether the request itself would carry the field, so that an operation
// without it never has it.
bool ComesWithRequest(Field field) {
  return Info(field).source == FieldSource::kRequest || field == Field::kType;
}

std::vector<uint32_t> UnionOf(const std::vector<uint32_t>& a,
                              const std::vector<uint32_t>& b) {
  std::vector<uint32_t> result;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(),
                 std::back_inserter(result));
  return result;
}

// Whether a test of `set` is one comparison: an interval, or all but one.
bool IsOneRange(const IntervalSet& set) {
  const std::vector<Interval>& intervals = set.intervals();
  return intervals.size() == 1 ||
         (intervals.size() == 2 && intervals[0].first == 0 &&
          intervals[1].last == IntervalSet::kMax);
}

void Append(const IntervalSet& set, std::vector<Interval>* intervals) {
  intervals->insert(intervals->end(), set.intervals().begin(),
                    set.intervals().end());
}

// What literals of an AND say about one field.
struct Group {
  FilterTest test;                // form, field and mask of the group
  bool positive = false;          // there are positive numbers
  std::vector<Interval> beyond;   // what one of them excludes
  std::vector<Interval> outside;  // what negated numbers exclude
  uint64_t ops = kAllOps;
  std::vector<uint32_t> none;              // negated texts: their union
  std::vector<std::vector<uint32_t>> any;  // positive texts
};

}  // namespace

Simplifier::Simplifier(const CheckedFilter& filter, NameTable& names) {
  InternFormula({Formula::Kind::kFalse, {}, {}});
  InternFormula({Formula::Kind::kTrue, {}, {}});
  root_ = Prepare(filter, names);
}

Simplifier::Skeleton Simplifier::Prepare(const CheckedFilter& filter,
                                         NameTable& names) {
  Skeleton skeleton;
  skeleton.kind = filter.kind;
  if (filter.kind == Ast::Kind::kPredicate) {
    skeleton.test = TestOf(filter.predicate, names);
    if (MeansSeveral(filter.predicate.field)) {
      const Predicate ops = PredicateOnOps(filter.predicate.field);
      Skeleton both;
      both.kind = Ast::Kind::kAnd;
      both.children = {{filter.kind, TestOf(ops, names), {}}, skeleton};
      return both;
    }
    if (filter.predicate.field != Field::kInode) return skeleton;
    // What has two files satisfies it with either.
    Predicate second = filter.predicate;
    second.field = Field::kInodeOut;
    Skeleton either;
    either.kind = Ast::Kind::kOr;
    either.children = {skeleton, {filter.kind, TestOf(second, names), {}}};
    return either;
  }
  for (const CheckedFilter& child : filter.children) {
    skeleton.children.push_back(Prepare(child, names));
  }
  return skeleton;
}

uint32_t Simplifier::TestOf(const Predicate& predicate, NameTable& names) {
  FilterTest test;
  test.field = predicate.field;
  switch (predicate.form) {
    case Predicate::Form::kOps:
      test.form = FilterTest::Form::kOps;
      test.ops = predicate.ops;
      break;
    case Predicate::Form::kNumber:
      test.form = FilterTest::Form::kNumber;
      test.mask = predicate.mask;
      test.set = predicate.set;
      if (ComesWithRequest(predicate.field)) {
        request_fields_used_ |= Bit(predicate.field);
      }
      break;
    case Predicate::Form::kText: {
      const uint32_t text = TextOf(predicate.field, predicate.text, names);
      test.any = {text};
      if (!IsName(predicate.field)) {
        test.form = FilterTest::Form::kText;
        uses_second_path_ |= predicate.field == Field::kNewPath;
        break;
      }
      // Names and extensions are asked together.
      test.field = Field::kName;
      test.form = texts_[text].bit != 0 ? FilterTest::Form::kNames
                                        : FilterTest::Form::kNameList;
      break;
    }
  }
  const uint32_t id = InternTest(std::move(test));
  if (predicate.form == Predicate::Form::kOps) op_tests_.push_back(id);
  return id;
}

uint32_t Simplifier::TextOf(Field field, const TextMatch& match,
                            NameTable& names) {
  const auto [known, added] = text_ids_.try_emplace(
      {field, match}, static_cast<uint32_t>(texts_.size()));
  if (!added) return known->second;
  Text text;
  if (IsName(field)) {
    NameTable::Handle handle = names.Register(field, match);
    text = {handle.matcher(), handle.bit(), handle.since()};
    handles_.push_back(std::move(handle));
  } else {
    text.matcher = TextMatcher::Make(field, match);
  }
  texts_.push_back(std::move(text));
  return known->second;
}

std::string Simplifier::Signature(Op op) const {
  std::string signature =
      std::to_string(Info(op).request_fields & request_fields_used_) + ':';
  if (uses_second_path_) signature += HasSecondPath(op) ? '2' : '1';
  for (const uint32_t id : op_tests_) {
    signature += (tests_[id].ops >> Index(op) & 1) != 0 ? '1' : '0';
  }
  return signature;
}

uint32_t Simplifier::Build(std::optional<Op> op) {
  return BuildFrom(root_, false, op);
}

uint32_t Simplifier::BuildFrom(const Skeleton& skeleton, bool negated,
                               std::optional<Op> op) {
  switch (skeleton.kind) {
    case Ast::Kind::kAll:
      return negated ? kFalse : kTrue;
    case Ast::Kind::kPredicate:
      return Literal({skeleton.test, negated}, op);
    case Ast::Kind::kNot:
      return BuildFrom(skeleton.children[0], !negated, op);
    case Ast::Kind::kAnd:
    case Ast::Kind::kOr:
      break;
  }
  // De Morgan: negation goes down to the literals.
  const bool is_and = (skeleton.kind == Ast::Kind::kAnd) != negated;
  std::vector<uint32_t> parts;
  parts.reserve(skeleton.children.size());
  for (const Skeleton& child : skeleton.children) {
    parts.push_back(BuildFrom(child, negated, op));
  }
  return Combine(is_and ? Formula::Kind::kAnd : Formula::Kind::kOr, parts);
}

uint32_t Simplifier::Literal(FilterLiteral literal, std::optional<Op> op) {
  // A copy: interning may move the tests.
  FilterTest test = tests_[literal.test];
  if (test.form == FilterTest::Form::kOps) {
    const uint64_t ops = literal.negated ? kAllOps & ~test.ops : test.ops;
    if (op) return (ops >> Index(*op) & 1) != 0 ? kTrue : kFalse;
    if (ops == 0) return kFalse;
    if (ops == kAllOps) return kTrue;
    test.ops = ops;
    literal = {InternTest(std::move(test)), false};
  } else if (op && test.form == FilterTest::Form::kNumber &&
             ComesWithRequest(test.field) &&
             (Info(*op).request_fields & Bit(test.field)) == 0) {
    return literal.negated ? kTrue : kFalse;
  } else if (op && test.form == FilterTest::Form::kText &&
             test.field == Field::kNewPath && !HasSecondPath(*op)) {
    return literal.negated ? kTrue : kFalse;
  }
  return InternFormula({Formula::Kind::kLiteral, literal, {}});
}

uint32_t Simplifier::Combine(Formula::Kind kind,
                             const std::vector<uint32_t>& parts) {
  const bool is_and = kind == Formula::Kind::kAnd;
  const uint32_t neutral = is_and ? kTrue : kFalse;
  const uint32_t absorbing = is_and ? kFalse : kTrue;

  std::vector<FilterLiteral> literals;
  std::vector<uint32_t> rest;
  const auto add = [&](uint32_t id) {
    const Formula& formula = formulas_[id];
    if (formula.kind == Formula::Kind::kLiteral) {
      // An OR is the negation of the AND of its negated literals.
      literals.push_back(formula.literal);
      literals.back().negated ^= !is_and;
    } else if (id != neutral) {
      rest.push_back(id);
    }
  };
  for (const uint32_t part : parts) {
    if (part == absorbing) return absorbing;
    if (formulas_[part].kind == kind) {
      for (const uint32_t child : formulas_[part].children) add(child);
    } else {
      add(part);
    }
  }
  if (!MergeAnd(&literals)) return absorbing;

  std::vector<uint32_t> children;
  for (FilterLiteral literal : literals) {
    literal.negated ^= !is_and;
    children.push_back(Literal(literal, std::nullopt));
  }
  std::set<uint32_t> seen;
  for (const uint32_t id : rest) {
    if (seen.insert(id).second) children.push_back(id);
  }
  if (children.empty()) return neutral;
  if (children.size() == 1) return children[0];
  std::stable_sort(
      children.begin(), children.end(),
      [&](uint32_t a, uint32_t b) { return costs_[a] < costs_[b]; });
  return InternFormula({kind, {}, std::move(children)});
}

bool Simplifier::MergeAnd(std::vector<FilterLiteral>* literals) {
  std::vector<Group> groups;  // in the order in which they appear
  std::map<std::tuple<FilterTest::Form, Field, uint64_t>, size_t> group_of;
  for (const FilterLiteral& literal : *literals) {
    const FilterTest& test = tests_[literal.test];
    const auto [at, added] =
        group_of.try_emplace({test.form, test.field, test.mask}, groups.size());
    if (added) {
      groups.emplace_back();
      groups.back().test.form = test.form;
      groups.back().test.field = test.field;
      groups.back().test.mask = test.mask;
    }
    Group& group = groups[at->second];
    switch (test.form) {
      case FilterTest::Form::kOps:
        group.ops &= literal.negated ? ~test.ops : test.ops;
        break;
      case FilterTest::Form::kNumber:
        // Collected first and united once: a filter may list thousands.
        group.positive |= !literal.negated;
        Append(literal.negated ? test.set : test.set.Complement(),
               literal.negated ? &group.outside : &group.beyond);
        break;
      default:
        if (literal.negated) {
          group.none = UnionOf(group.none, test.any);
        } else if (std::find(group.any.begin(), group.any.end(), test.any) ==
                   group.any.end()) {
          group.any.push_back(test.any);
        }
    }
  }

  literals->clear();
  for (Group& group : groups) {
    FilterTest test = group.test;
    switch (test.form) {
      case FilterTest::Form::kOps:
        if (group.ops == 0) return false;
        if (group.ops == kAllOps) continue;
        test.ops = group.ops;
        literals->push_back({InternTest(std::move(test)), false});
        break;
      case FilterTest::Form::kNumber: {
        test.set = IntervalSet::OfAll(std::move(group.outside));
        if (group.positive) {
          test.set = test.set.Union(IntervalSet::OfAll(std::move(group.beyond)))
                         .Complement();
        }
        if (test.set.empty()) return false;
        literals->push_back({InternTest(std::move(test)), !group.positive});
        break;
      }
      default:
        for (std::vector<uint32_t>& any : group.any) {
          if (std::includes(group.none.begin(), group.none.end(), any.begin(),
                            any.end())) {
            return false;
          }
          FilterTest positive = test;
          positive.any = std::move(any);
          literals->push_back({InternTest(std::move(positive)), false});
        }
        if (!group.none.empty()) {
          test.any = std::move(group.none);
          literals->push_back({InternTest(std::move(test)), true});
        }
    }
  }
  return true;
}

uint32_t Simplifier::InternTest(FilterTest test) {
  const auto [at, added] =
      test_ids_.try_emplace(test, static_cast<uint32_t>(tests_.size()));
  if (added) tests_.push_back(std::move(test));
  return at->second;
}

uint32_t Simplifier::InternFormula(Formula formula) {
  const auto [at, added] = formula_ids_.try_emplace(
      formula, static_cast<uint32_t>(formulas_.size()));
  if (!added) return at->second;
  Cost cost;
  if (formula.kind == Formula::Kind::kLiteral) {
    cost = {TestRank(tests_[formula.literal.test]), 1};
  }
  for (const uint32_t child : formula.children) {
    cost.rank = std::max(cost.rank, costs_[child].rank);
    cost.count += costs_[child].count;
  }
  formulas_.push_back(std::move(formula));
  costs_.push_back(cost);
  return at->second;
}

// Cheap ones first. FieldSource is in that order already; between its steps
// stand the forms of the test.
uint32_t Simplifier::TestRank(const FilterTest& test) const {
  const auto source = [](Field field) {
    return 10 * static_cast<uint32_t>(Info(field).source);
  };
  switch (test.form) {
    case FilterTest::Form::kOps:
      return 0;
    case FilterTest::Form::kNumber:
      return 1 + source(test.field) + (IsOneRange(test.set) ? 0 : 1);
    case FilterTest::Form::kNames:
      return 3 + source(Field::kName);
    case FilterTest::Form::kNameList:  // asks the inode table, under its lock
      return 3 + source(Field::kMode);
    case FilterTest::Form::kText:
      return 3 + source(test.field);
  }
  return 0;
}

}  // namespace tracefs
