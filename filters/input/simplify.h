// From a checked filter to the smallest equal formula the compiler knows how to
// find, for all operations or for one. Tests on one field are merged into one,
// constants folded, cheap tests put before dear ones.
//
// The algebra rests on one rule of the language: a predicate on something the
// event does not have is false. So "NOT (uid = 5)" is more than "uid != 5", and
// a literal is a test or the negation of one.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "filters/input/check.h"
#include "filters/input/name_table.h"
#include "filters/input/text_matcher.h"
#include "tracefs/event/op.h"

namespace tracefs {

// A test a program node can make; distinct tests have distinct numbers.
struct FilterTest {
  enum class Form : uint8_t {
    kOps,       // the operation is one of `ops`; never negated
    kNumber,    // present, and (value & mask) in order lies in `set`
    kNames,     // any of the name predicates `any`, all of which have a bit
    kNameList,  // any of the name predicates `any`, none of which has one
    kText,      // any of the predicates `any` on path or cname
  };
  Form form{};
  Field field{};
  uint64_t ops = 0;
  uint64_t mask = 0;
  IntervalSet set;
  std::vector<uint32_t> any;  // sorted; numbers of texts()

  friend auto operator<=>(const FilterTest&, const FilterTest&) = default;
};

struct FilterLiteral {
  uint32_t test = 0;
  bool negated = false;

  friend auto operator<=>(const FilterLiteral&, const FilterLiteral&) = default;
};

struct Formula {
  enum class Kind : uint8_t { kFalse, kTrue, kLiteral, kAnd, kOr };
  Kind kind{};
  FilterLiteral literal;
  std::vector<uint32_t> children;  // numbers of formulas, cheapest first

  friend auto operator<=>(const Formula&, const Formula&) = default;
};

class Simplifier {
 public:
  // A predicate on text, as nodes refer to it.
  struct Text {
    std::shared_ptr<const TextMatcher> matcher;
    uint64_t bit = 0;  // of a name predicate
    uint32_t since = 0;
  };

  // Registers the name predicates of `filter`.
  Simplifier(const CheckedFilter& filter, NameTable& names);

  // The filter's formula; with an operation, only what is left to ask then.
  uint32_t Build(std::optional<Op> op);

  // Equal for operations whose formulas are equal.
  std::string Signature(Op op) const;

  const Formula& formula(uint32_t id) const { return formulas_[id]; }
  const FilterTest& test(uint32_t id) const { return tests_[id]; }
  const std::vector<Text>& texts() const { return texts_; }
  // What keeps the bits; the filter holds them as long as it runs.
  std::vector<NameTable::Handle> TakeHandles() { return std::move(handles_); }

 private:
  // The checked filter with tests in place of predicates.
  struct Skeleton {
    Ast::Kind kind{};
    uint32_t test = 0;
    std::vector<Skeleton> children;
  };
  struct Cost {
    uint32_t rank = 0;   // of the dearest test
    uint32_t count = 0;  // of tests

    friend auto operator<=>(const Cost&, const Cost&) = default;
  };

  Skeleton Prepare(const CheckedFilter& filter, NameTable& names);
  uint32_t TestOf(const Predicate& predicate, NameTable& names);
  uint32_t TextOf(Field field, const TextMatch& match, NameTable& names);

  uint32_t BuildFrom(const Skeleton& skeleton, bool negated,
                     std::optional<Op> op);
  uint32_t Literal(FilterLiteral literal, std::optional<Op> op);
  uint32_t Combine(Formula::Kind kind, const std::vector<uint32_t>& parts);
  // The literals of an AND merged; false if they contradict each other.
  bool MergeAnd(std::vector<FilterLiteral>* literals);

  uint32_t InternTest(FilterTest test);
  uint32_t InternFormula(Formula formula);
  uint32_t TestRank(const FilterTest& test) const;

  Skeleton root_;
  std::vector<FilterTest> tests_;
  std::map<FilterTest, uint32_t> test_ids_;
  std::vector<Formula> formulas_;
  std::vector<Cost> costs_;  // of formulas_
  std::map<Formula, uint32_t> formula_ids_;
  std::vector<Text> texts_;
  std::map<std::pair<Field, TextMatch>, uint32_t> text_ids_;
  std::vector<NameTable::Handle> handles_;
  std::vector<uint32_t> op_tests_;    // the filter's own, for Signature
  uint64_t request_fields_used_ = 0;  // bits; likewise
  bool uses_second_path_ = false;     // likewise
};

}  // namespace tracefs
