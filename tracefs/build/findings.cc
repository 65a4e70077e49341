#include "tracefs/build/findings.h"

#include <sys/stat.h>

#include <algorithm>
#include <unordered_set>

namespace tracefs::build {
namespace {

constexpr uint8_t kFolderType = S_IFDIR >> 12;

}  // namespace

std::vector<AbsentPath> FindAbsent(const BuildGraph& graph) {
  std::vector<AbsentPath> absent;
  for (PathId path = 0; path < graph.paths().size(); ++path) {
    size_t missed = 0;
    bool found = false;
    for (const BuildGraph::PathUse& use : graph.UsesOfPath(path)) {
      if (use.use->Has(kAbsent)) ++missed;
      found |= use.use->Has(kRead | kWrite | kList | kCreate);
    }
    if (missed != 0 && !found) absent.push_back({path, missed});
  }
  std::stable_sort(absent.begin(), absent.end(),
                   [](const AbsentPath& a, const AbsentPath& b) {
                     return a.executions > b.executions;
                   });
  return absent;
}

std::vector<PathId> FindUnused(const BuildGraph& graph) {
  std::vector<PathId> unused;
  for (PathId path = 0; path < graph.paths().size(); ++path) {
    const PathFacts& facts = graph.Facts(path);
    if (facts.gone || facts.type == kFolderType) continue;
    std::unordered_set<ExecutionId> writers;
    const std::vector<BuildGraph::PathUse> uses = graph.UsesOfPath(path);
    for (const BuildGraph::PathUse& use : uses) {
      if (use.use->Writes()) writers.insert(use.execution);
    }
    if (writers.empty()) continue;
    const bool read = std::any_of(
        uses.begin(), uses.end(), [&](const BuildGraph::PathUse& use) {
          return use.use->Reads() && !writers.contains(use.execution);
        });
    if (!read) unused.push_back(path);
  }
  return unused;
}

}  // namespace tracefs::build
