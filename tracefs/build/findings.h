// What is suspicious in a build: reads that race with a writer, and files that
// nobody was looking for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tracefs/build/build_graph.h"
#include "tracefs/build/dependencies.h"

namespace tracefs::build {

// Two jobs that meet at a file, of which nothing says who comes first.
struct Race {
  enum class Kind : uint8_t {
    kReadBefore,    // read, and written afterwards
    kReadDuring,    // read while it was being written
    kProbedBefore,  // looked for in vain, and made afterwards
  };
  Kind kind{};
  PathId path = PathTable::kNone;
  ProcessId writer = kNobody;
  ProcessId reader = kNobody;
  uint64_t gap_ns = 0;  // from the reader to the writer; of kReadDuring, from
                        // the reader to the last write
};
std::string_view RaceName(Race::Kind kind);
std::vector<Race> FindRaces(const BuildGraph& graph,
                            const DependencyFinder& finder);

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
