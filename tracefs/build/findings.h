// What is suspicious in a build: reads that race with a writer, files that
// nobody was looking for, and what was changed between two builds.
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

// Why a file was made again.
struct RebuildReason {
  enum class Kind : uint8_t {
    kNew,           // the old build did not make it
    kCommand,       // the command line of its writer is another one
    kInputAdded,    // `path` was not read before
    kInputRemoved,  // and is not read any more
    kInputChanged,  // its size or its time of modification is another one
    kInputMade,     // `path` itself was made again; why is told below it
    kNothingSeen,
  };
  Kind kind{};
  PathId target = PathTable::kNone;  // in the new graph
  std::string path;
  std::string before;
  std::string after;
};
std::string_view RebuildReasonName(RebuildReason::Kind kind);
// Of `target` and, as far as they were made again, of its dependencies.
std::vector<RebuildReason> WhyRebuilt(const BuildGraph& before,
                                      const BuildGraph& after,
                                      const DependencyOptions& options,
                                      PathId target);

}  // namespace tracefs::build
