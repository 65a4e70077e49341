// The instrumentation map of XRay exports: an ELF file with a function for each
// operation, in the order of their numbers, which is what makes function ids.
#pragma once

#include <cstdint>
#include <string>

#include "tracefs/event/op.h"

namespace tracefs {

// XRay counts functions from 1 on.
inline constexpr int32_t XrayFunction(Op op) {
  return static_cast<int32_t>(Index(op)) + 1;
}
// A call of no length at the very begin of each thread, "tracefs_start": what
// llvm-xray account reads first decides which records are too old for it.
inline constexpr int32_t kXrayStart = static_cast<int32_t>(kOpCount) + 1;

std::string XrayMap();

}  // namespace tracefs
