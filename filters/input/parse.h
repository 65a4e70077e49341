// First stage of the filter language (LANGUAGE.md): text -> syntax tree. Knows
// the grammar, no field, no type, no value.
//
// Tested by tests/unit/filters/input/parse_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/text_cursor.h"

namespace tracefs {

// Limits, so that a hostile filter costs little: the tree is walked
// recursively, and a program has 16-bit node numbers.
inline constexpr size_t kMaxFilterBytes = size_t{1} << 20;
inline constexpr size_t kMaxFilterNesting = 200;
inline constexpr size_t kMaxFilterPredicates = 16384;
inline constexpr size_t kMaxFilterValues = 65536;  // of all predicates
inline constexpr size_t kMaxFilterWordBytes = 4096;

enum class Comparison : uint8_t {
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kIn,
  kMatch,
  kOf,  // of `descendant` alone
};
// "=", …, "IN", "~", "of".
std::string_view ComparisonText(Comparison comparison);

struct AstWord {
  std::string text;  // of a string: without quotes and escapes
  SourcePosition position;
  bool quoted = false;
};

// O_CREAT | O_EXCL is one value of two words.
struct AstValue {
  std::vector<AstWord> words;
};

struct AstPredicate {
  AstWord field;
  Comparison comparison{};
  SourcePosition comparison_position;
  std::vector<AstValue> values;  // one; of IN at least one
};

struct Ast {
  enum class Kind : uint8_t {
    kAll,  // the empty filter; only as the root
    kPredicate,
    kNot,  // one child
    kAnd,  // two or more children, none of them an AND
    kOr,   // likewise
  };
  Kind kind = Kind::kAll;
  std::vector<Ast> children;
  AstPredicate predicate;
};

// Errors are kInvalid and say "file:line:column: …" with the offending word.
// `start` is where in the file `text` begins.
Result<Ast> ParseFilter(std::string_view text, std::string_view file = {},
                        SourcePosition start = {});

// The tree as text: fully parenthesised, parses to the same tree.
std::string Dump(const Ast& ast);

}  // namespace tracefs
