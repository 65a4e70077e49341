// The slow, obvious evaluator of the filter language: the oracle against which
// the compiled filter is checked. Linked only into tests.
//
// It walks the syntax tree for every event, reads each value's text anew and
// shares nothing with the stages behind the parser. What it says is what
// filters/input/LANGUAGE.md says.
#pragma once

#include <string_view>

#include "filters/input/parse.h"
#include "tests/support/filter_world.h"
#include "tracefs/event/event.h"

namespace tracefs::testing {

bool EvalSlowly(const Ast& ast, Event& event, const FakeNames& names);

// Recursive, exponential, obvious.
bool GlobSlowly(std::string_view pattern, std::string_view text, bool path);

}  // namespace tracefs::testing
