// The smallest change that makes a mount trace as a config says: tracers that
// are the same go on, and so do their traces.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "tracefs/tracers/plan.h"
#include "tracefs/tracers/registry.h"

namespace tracefs {

// The answer to `compare` (docs/control-protocol.md).
nlohmann::ordered_json DifferenceJson(const Config& wanted,
                                      const TracerRegistry::Entries& running);

// The tracers of a file by their ids, in its order: "3 0 1". 0 is one that is
// still to come, of which nothing is known here.
Result<std::vector<FileTracer>> TracersAmong(
    std::string_view ids, const TracerRegistry::Entries& running);

}  // namespace tracefs
