// What was changed between two builds: why a file was made again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/build/build_config.h"
#include "tracefs/build/build_graph.h"
#include "tracefs/build/dependencies.h"

namespace tracefs::build {

// Why a file was made again.
struct RebuildReason {
  enum class Kind : uint8_t {
    kNew,           // the old build did not make it
    kCommand,       // it was made by another command line; names that were
                    // made up for it (temporary_names.h) do not count
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
// Of `target` and, as far as they were made again, of its dependencies. Where
// one of `config`'s drivers ran the writer, its command is compared first: the
// assembler's says nothing of what was asked for. What a build leaves for
// itself in temporary files counts as what these were made from.
std::vector<RebuildReason> WhyRebuilt(const BuildGraph& before,
                                      const BuildGraph& after,
                                      const DependencyOptions& options,
                                      const BuildConfig& config, PathId target);

}  // namespace tracefs::build
