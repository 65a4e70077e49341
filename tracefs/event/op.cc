#include "tracefs/event/op.h"

#include "tracefs/base/spelling.h"

namespace tracefs {

#define TRACEFS_OP_IN_PLACE(name, number, ...) &&number == place++
static_assert(
    [] {
      int place = 0;
      return true TRACEFS_OPS(TRACEFS_OP_IN_PLACE);
    }(),
    "the rows are in the order of their numbers, without gaps");
#undef TRACEFS_OP_IN_PLACE

std::vector<Op> OpsOf(OpFamily family) {
  std::vector<Op> ops;
  for (size_t i = 0; i < kOpCount; ++i) {
    const auto op = static_cast<Op>(i);
    if (Info(op).family == family) ops.push_back(op);
  }
  return ops;
}

std::optional<Op> OpFromName(std::string_view name) {
  if (SameButForCase(name, "close")) return Op::release_;
  for (size_t i = 0; i < kOpCount; ++i) {
    const auto op = static_cast<Op>(i);
    if (SameButForCase(OpName(op), name)) return op;
  }
  return std::nullopt;
}

std::optional<Op> OpFromNumber(uint64_t number) {
  if (number >= kOpCount) return std::nullopt;
  return static_cast<Op>(number);
}

}  // namespace tracefs
