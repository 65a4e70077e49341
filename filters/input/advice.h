// What a filter says that its writer can hardly have meant: parts that can
// never be true. The language takes them, for a program may write filters; a
// person gets a word about them.
//
// Tested by tests/unit/filters/input/advice_test.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "filters/input/check.h"
#include "filters/input/parse.h"

namespace tracefs {

// Warnings as errors look, "file:line:column: …", in the order of the text, at
// most kMaxAdvice of them. `checked` is what CheckFilter made of `ast`. It
// looks at predicates and at those joined by one AND; what else can never match
// shows in the compiled program.
std::vector<std::string> AdviseOn(const Ast& ast, const CheckedFilter& checked,
                                  std::string_view file);

inline constexpr size_t kMaxAdvice = 16;

}  // namespace tracefs
