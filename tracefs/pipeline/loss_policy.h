// LossPolicy: what a tracer does when its output cannot take what it records
// (`when_full` of an output driver; config/REFERENCE.md).
#pragma once

#include <cstdint>

namespace tracefs {

enum class LossPolicy : uint8_t {
  kBlock,    // wait, up to a deadline; then lose and count
  kDrop,     // lose at once, and count
  kSpill,    // keep on a local disk, up to a limit; then lose and count
  kDegrade,  // lose the operations, keep how many there were of each kind
  kFail,     // refuse operations that would have to be recorded
};

}  // namespace tracefs
