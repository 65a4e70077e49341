// Second stage of the filter language: syntax tree -> checked tree. Every field
// is known, every value is a number or a checked text in the range of its
// field, names are resolved; what can never be meant is refused.
//
// Tested by tests/unit/filters/input/check_test.cc.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "filters/input/interval_set.h"
#include "filters/input/name_service.h"
#include "filters/input/parse.h"
#include "tracefs/event/field.h"
#include "tracefs/event/op.h"

namespace tracefs {

// What a text must be: one of some texts, none of them, or of a pattern.
struct TextMatch {
  // kKnown: whatever it is.
  enum class Kind : uint8_t { kAnyOf, kNoneOf, kGlob, kKnown };
  Kind kind{};
  std::vector<std::string> texts;  // sorted, distinct; kGlob: the pattern

  friend auto operator<=>(const TextMatch&, const TextMatch&) = default;
};

// A bit for each operation.
inline constexpr uint64_t kAllOps = (uint64_t{1} << kOpCount) - 1;

struct Predicate {
  enum class Form : uint8_t { kOps, kNumber, kText };
  Form form{};
  Field field{};
  // kOps: bit per operation.
  uint64_t ops = 0;
  // kOps: those that the text names: of "op != read", read.
  uint64_t named_ops = 0;
  // kNumber: (value & mask), in the order of the field, lies in `set`.
  uint64_t mask = IntervalSet::kMax;
  IntervalSet set;
  // kText: some text of the event's field is matched.
  TextMatch text;

  friend bool operator==(const Predicate&, const Predicate&) = default;
};

// Sets of signed fields hold value ^ OrderBias(field), so that their unsigned
// order is the field's.
uint64_t OrderBias(Field field);

struct CheckedFilter {
  using Kind = Ast::Kind;
  Kind kind = Kind::kAll;
  std::vector<CheckedFilter> children;
  Predicate predicate;
};

// Errors as ParseFilter's; kSystem where the name service failed.
Result<CheckedFilter> CheckFilter(const Ast& ast, std::string_view file,
                                  const NameService& names);

// Whether filters may ask if it is known, as in "cname = unknown": so it is of
// what is found out about the caller.
bool MayBeUnknown(Field field);

// One predicate as the dumps show it: "cuid in 0..99 1000", "name ~ *.c".
std::string Dump(const Predicate& predicate);

}  // namespace tracefs
