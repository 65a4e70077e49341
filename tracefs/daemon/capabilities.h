// What the process may do beyond an ordinary user: capabilities(7), by plain
// system calls.
#pragma once

#include <linux/capability.h>

#include <cstdint>
#include <string>

#include "tracefs/base/status.h"

namespace tracefs {

constexpr uint64_t CapabilityBit(int capability) {
  return uint64_t{1} << capability;
}

// The calling thread's effective set.
uint64_t EffectiveCapabilities();
inline bool HasCapability(int capability) {
  return (EffectiveCapabilities() & CapabilityBit(capability)) != 0;
}

// Gives up, for good and for the calling thread and those it makes, every
// capability not in `keep`: bounding, permitted, effective, inheritable and
// ambient. None is gained. kSystem if that fails.
Status LimitCapabilities(uint64_t keep);

// "chown dac_override …", lower case without the prefix; unknown ones as
// numbers.
std::string CapabilityNames(uint64_t capabilities);

}  // namespace tracefs
