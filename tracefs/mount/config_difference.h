// What has to be done for a mount to trace as a config says, with the least
// change: tracers that are the same go on, and their traces with them.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tracefs/tracers/plan.h"
#include "tracefs/tracers/registry.h"

namespace tracefs {

// The answer to `compare` (docs/control-protocol.md).
nlohmann::ordered_json DifferenceJson(const Config& wanted,
                                      const TracerRegistry::Entries& running);

}  // namespace tracefs
