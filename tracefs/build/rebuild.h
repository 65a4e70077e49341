// What was changed between two builds: why a file was made again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/build/build_graph.h"
#include "tracefs/build/dependencies.h"

namespace tracefs::build {

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
