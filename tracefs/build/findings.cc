#include "tracefs/build/findings.h"

#include <sys/stat.h>

#include <algorithm>
#include <unordered_set>

namespace tracefs::build {
namespace {

constexpr uint8_t kFolderType = S_IFDIR >> 12;

}  // namespace

std::string_view RaceName(Race::Kind kind) {
  switch (kind) {
    case Race::Kind::kReadBefore:
      return "read-before-write";
    case Race::Kind::kReadDuring:
      return "read-during-write";
    case Race::Kind::kProbedBefore:
      return "probed-before-write";
  }
  return {};
}

std::vector<Race> FindRaces(const BuildGraph& graph,
                            const DependencyFinder& finder) {
  std::vector<Race> races;
  std::vector<ProcessId> jobs(graph.processes().size());
  for (ProcessId id = 0; id < jobs.size(); ++id) jobs[id] = finder.JobOf(id);
  for (PathId path = 0; path < graph.paths().size(); ++path) {
    const std::vector<BuildGraph::PathUse> uses = graph.UsesOfPath(path);
    const bool written =
        std::any_of(uses.begin(), uses.end(),
                    [](const auto& use) { return use.use->Writes(); });
    if (!written || uses.size() < 2) continue;
    for (const BuildGraph::PathUse& writing : uses) {
      if (!writing.use->Writes()) continue;
      const ProcessId writer = graph.executions()[writing.execution].process;
      for (const BuildGraph::PathUse& other : uses) {
        const ProcessId reader = graph.executions()[other.execution].process;
        if (jobs[reader] == jobs[writer] || graph.IsAncestor(reader, writer) ||
            graph.IsAncestor(writer, reader)) {
          continue;
        }
        const Use& w = *writing.use;
        const Use& r = *other.use;
        const auto add = [&](Race::Kind kind, uint64_t from, uint64_t to) {
          races.push_back({kind, path, writer, reader, to - from});
        };
        if (r.Reads() && r.first_read_ns != 0) {
          if (r.first_read_ns < w.first_write_ns) {
            add(Race::Kind::kReadBefore, r.first_read_ns, w.first_write_ns);
          } else if (r.first_read_ns < w.last_write_ns) {
            add(Race::Kind::kReadDuring, r.first_read_ns, w.last_write_ns);
          }
        } else if (r.first_absent_ns != 0 &&
                   r.first_absent_ns < w.first_write_ns) {
          add(Race::Kind::kProbedBefore, r.first_absent_ns, w.first_write_ns);
        }
      }
    }
  }
  std::stable_sort(
      races.begin(), races.end(),
      [](const Race& a, const Race& b) { return a.kind < b.kind; });
  return races;
}

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
    std::unordered_set<ProcessId> writers;
    const std::vector<BuildGraph::PathUse> uses = graph.UsesOfPath(path);
    for (const BuildGraph::PathUse& use : uses) {
      if (use.use->Writes()) {
        writers.insert(graph.executions()[use.execution].process);
      }
    }
    if (writers.empty()) continue;
    const bool read = std::any_of(
        uses.begin(), uses.end(), [&](const BuildGraph::PathUse& use) {
          return use.use->Reads() &&
                 !writers.contains(graph.executions()[use.execution].process);
        });
    if (!read) unused.push_back(path);
  }
  return unused;
}

}  // namespace tracefs::build
