// An index for a trace that was recorded without one.
#pragma once

#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/tools/deps/load_graph.h"

namespace tracefs {

// Puts the index of what was read of the trace before its last block, and the
// file as a whole into the place of the one that is there. kInvalid, with the
// reason, where that cannot be: it has one, is not whole, is no single file, or
// is protected by keys, which what is added later would not be.
Status AddIndex(const std::string& name, const std::vector<std::string>& keys,
                const LoadedGraph& loaded);

}  // namespace tracefs
