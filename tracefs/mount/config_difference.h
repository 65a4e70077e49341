// The smallest change that makes a mount trace as a config says: tracers that
// are the same go on, and so do their traces.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tracefs/tracers/plan.h"
#include "tracefs/tracers/registry.h"

namespace tracefs {

// The answer to `compare` (docs/control-protocol.md).
nlohmann::ordered_json DifferenceJson(const Config& wanted,
                                      const TracerRegistry::Entries& running);

}  // namespace tracefs
