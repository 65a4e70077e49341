#include "tracefs/event/op.h"

#include <array>

#include "tracefs/base/spelling.h"

namespace tracefs {
namespace {

constexpr std::array<std::string_view, kOpCount> kNames = {
#define TRACEFS_OP_NAME(name, number) #name,
    TRACEFS_OPS(TRACEFS_OP_NAME)
#undef TRACEFS_OP_NAME
};

}  // namespace

std::string_view OpName(Op op) { return kNames[Index(op)]; }

std::optional<Op> OpFromName(std::string_view name) {
  if (SameButForCase(name, "close")) return Op::release_;
  for (size_t i = 0; i < kNames.size(); ++i) {
    if (SameButForCase(kNames[i], name)) return static_cast<Op>(i);
  }
  return std::nullopt;
}

std::optional<Op> OpFromNumber(uint64_t number) {
  if (number >= kOpCount) return std::nullopt;
  return static_cast<Op>(number);
}

}  // namespace tracefs
