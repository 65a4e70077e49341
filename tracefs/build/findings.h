// What is suspicious in a build: names that were never found, and files that
// were never looked up.
#pragma once

#include <cstddef>
#include <vector>

#include "tracefs/build/build_graph.h"

namespace tracefs::build {

// A name that was looked for and never found by so many executions.
struct AbsentPath {
  PathId path = PathTable::kNone;
  size_t executions = 0;
};
// Most wanted first.
std::vector<AbsentPath> FindAbsent(const BuildGraph& graph);

// Files that were made, are still there, and that no other process read.
std::vector<PathId> FindUnused(const BuildGraph& graph);

}  // namespace tracefs::build
