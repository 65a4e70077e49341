#include "tracefs/build/findings.h"

#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <unordered_set>

namespace tracefs::build {
namespace {

constexpr uint8_t kFolderType = S_IFDIR >> 12;

// The last writer of a path; null if nobody wrote it.
const BuildGraph::PathUse* LastWriter(
    const std::vector<BuildGraph::PathUse>& uses) {
  const BuildGraph::PathUse* last = nullptr;
  for (const BuildGraph::PathUse& use : uses) {
    if (!DependencyFinder::Writes(*use.use)) continue;
    if (last == nullptr || use.use->last_write_ns > last->use->last_write_ns) {
      last = &use;
    }
  }
  return last;
}

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
    const bool written = std::any_of(
        uses.begin(), uses.end(),
        [](const auto& use) { return DependencyFinder::Writes(*use.use); });
    if (!written || uses.size() < 2) continue;
    for (const BuildGraph::PathUse& writing : uses) {
      if (!DependencyFinder::Writes(*writing.use)) continue;
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
        if (DependencyFinder::Reads(r) && r.first_read_ns != 0) {
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
      if (DependencyFinder::Writes(*use.use)) {
        writers.insert(graph.executions()[use.execution].process);
      }
    }
    if (writers.empty()) continue;
    const bool read = std::any_of(
        uses.begin(), uses.end(), [&](const BuildGraph::PathUse& use) {
          return DependencyFinder::Reads(*use.use) &&
                 !writers.contains(graph.executions()[use.execution].process);
        });
    if (!read) unused.push_back(path);
  }
  return unused;
}

std::string_view RebuildReasonName(RebuildReason::Kind kind) {
  switch (kind) {
    case RebuildReason::Kind::kNew:
      return "new";
    case RebuildReason::Kind::kCommand:
      return "command";
    case RebuildReason::Kind::kInputAdded:
      return "input-added";
    case RebuildReason::Kind::kInputRemoved:
      return "input-removed";
    case RebuildReason::Kind::kInputChanged:
      return "input-changed";
    case RebuildReason::Kind::kInputMade:
      return "input-made";
    case RebuildReason::Kind::kNothingSeen:
      return "nothing-seen";
  }
  return {};
}

namespace {

// One target of two builds, compared.
class Comparison {
 public:
  Comparison(const BuildGraph& before, const BuildGraph& after,
             const DependencyOptions& options)
      : before_(before),
        after_(after),
        old_finder_(before, options),
        new_finder_(after, options) {}

  std::vector<RebuildReason> Run(PathId target) {
    std::vector<PathId> left = {target};
    std::set<PathId> seen = {target};
    while (!left.empty()) {
      const PathId at = left.back();
      left.pop_back();
      for (const PathId made : Compare(at)) {
        if (seen.insert(made).second) left.push_back(made);
      }
    }
    return std::move(reasons_);
  }

 private:
  using Kind = RebuildReason::Kind;

  void Add(Kind kind, PathId target, std::string path = {},
           std::string before = {}, std::string after = {}) {
    reasons_.push_back(
        {kind, target, std::move(path), std::move(before), std::move(after)});
  }

  static std::string CommandOf(const BuildGraph& graph, PathId path) {
    const auto uses = graph.UsesOfPath(path);
    const BuildGraph::PathUse* const writer = LastWriter(uses);
    if (writer == nullptr) return {};
    return graph.LastExecution(graph.executions()[writer->execution].process)
        .CommandLine();
  }

  // What its writers read.
  static std::set<std::string> InputsOf(const BuildGraph& graph,
                                        DependencyFinder& finder, PathId path) {
    std::set<std::string> inputs;
    for (const BuildGraph::PathUse& use : graph.UsesOfPath(path)) {
      if (!DependencyFinder::Writes(*use.use)) continue;
      const ProcessId writer = graph.executions()[use.execution].process;
      for (const PathId read : finder.ReadsOf(finder.GroupOf(writer))) {
        if (read != path) inputs.insert(graph.paths().Text(read));
      }
    }
    return inputs;
  }

  static std::string FactsText(const PathFacts& facts) {
    return std::to_string(facts.size) + " bytes, modified at " +
           std::to_string(facts.mtime_ns / 1'000'000'000) + "." +
           std::to_string(1'000'000'000 + facts.mtime_ns % 1'000'000'000)
               .substr(1);
  }

  // Adds the reasons of one target; returns those inputs that were made again.
  std::vector<PathId> Compare(PathId target) {
    std::vector<PathId> made;
    const size_t before_count = reasons_.size();
    const std::string name = after_.paths().Text(target);
    const PathId old = before_.paths().Find(name);
    const std::string new_command = CommandOf(after_, target);
    if (old == PathTable::kNone ||
        LastWriter(before_.UsesOfPath(old)) == nullptr) {
      Add(Kind::kNew, target);
      return made;
    }
    const std::string old_command = CommandOf(before_, old);
    if (old_command != new_command) {
      Add(Kind::kCommand, target, {}, old_command, new_command);
    }
    const std::set<std::string> old_inputs =
        InputsOf(before_, old_finder_, old);
    const std::set<std::string> new_inputs =
        InputsOf(after_, new_finder_, target);
    for (const std::string& path : new_inputs) {
      if (!old_inputs.contains(path)) Add(Kind::kInputAdded, target, path);
    }
    for (const std::string& path : old_inputs) {
      if (!new_inputs.contains(path)) Add(Kind::kInputRemoved, target, path);
    }
    for (const std::string& path : new_inputs) {
      if (!old_inputs.contains(path)) continue;
      const PathId id = after_.paths().Find(path);
      if (LastWriter(after_.UsesOfPath(id)) != nullptr) {
        Add(Kind::kInputMade, target, path);
        made.push_back(id);
        continue;
      }
      const PathFacts& was = before_.Facts(before_.paths().Find(path));
      const PathFacts& is = after_.Facts(id);
      const bool known = was.mtime_ns != 0 && is.mtime_ns != 0;
      if (known && (was.mtime_ns != is.mtime_ns || was.size != is.size)) {
        Add(Kind::kInputChanged, target, path, FactsText(was), FactsText(is));
      }
    }
    if (reasons_.size() == before_count) Add(Kind::kNothingSeen, target);
    return made;
  }

  const BuildGraph& before_;
  const BuildGraph& after_;
  DependencyFinder old_finder_;
  DependencyFinder new_finder_;
  std::vector<RebuildReason> reasons_;
};

}  // namespace

std::vector<RebuildReason> WhyRebuilt(const BuildGraph& before,
                                      const BuildGraph& after,
                                      const DependencyOptions& options,
                                      PathId target) {
  if (LastWriter(after.UsesOfPath(target)) == nullptr) return {};
  return Comparison(before, after, options).Run(target);
}

}  // namespace tracefs::build
