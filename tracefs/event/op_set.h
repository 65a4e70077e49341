// Sets of operations, written down where they are used.
#pragma once

#include <cstddef>

#include "tracefs/event/op.h"

namespace tracefs {

// Whether it is one of `ops`. `known`: how many operations there were when the
// list was written. With another one it does not compile before somebody has
// decided whether that belongs to the list.
template <size_t known, Op... ops>
constexpr bool IsAmong(Op op) {
  static_assert(known == kOpCount, "a new operation: is it one of these?");
  return ((op == ops) || ...);
}

}  // namespace tracefs
