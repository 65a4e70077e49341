// Findings about a build as text or, with `json`, as JSON.
#pragma once

#include <string>
#include <vector>

#include "tracefs/build/findings.h"
#include "tracefs/build/races.h"
#include "tracefs/build/rebuild.h"
#include "tracefs/tools/deps/declared.h"

namespace tracefs {

// `wanted`: pids, or words that a command line has; empty: all.
std::string SetsText(const build::BuildGraph& graph,
                     const std::vector<std::string>& wanted, bool json);
// `all`: also of a process and its own descendants.
std::string DoubleWritesText(const build::BuildGraph& graph, bool all,
                             bool json);
std::string RacesText(const build::BuildGraph& graph, const build::Races& races,
                      bool json);
std::string AbsentText(const build::BuildGraph& graph, bool json);
std::string UnusedText(const build::BuildGraph& graph,
                       const std::vector<build::PathId>& wanted, bool json);
std::string RebuildText(const build::BuildGraph& graph,
                        const std::vector<build::RebuildReason>& reasons,
                        bool json);
std::string DifferenceText(const DeclaredDifference& difference, bool json);

}  // namespace tracefs
