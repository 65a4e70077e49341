#include "tracefs/build/rebuild.h"

#include <algorithm>
#include <set>
#include <unordered_set>
#include <utility>

#include "tracefs/base/time_window.h"
#include "tracefs/build/compilation.h"
#include "tracefs/build/temporary_names.h"

namespace tracefs::build {

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

// The numbers that the paths of one graph have in another. Each is looked up
// once: builds read the same headers a million times.
class PathTranslation {
 public:
  PathTranslation(const PathTable& from, const PathTable& to)
      : from_(from), to_(to), known_(from.size(), kNotAsked) {}

  // kNone where the other one does not have it.
  PathId Of(PathId path) {
    PathId& there = known_[path];
    if (there == kNotAsked) there = to_.Find(from_.Text(path));
    return there;
  }

 private:
  static constexpr PathId kNotAsked = PathTable::kNone - 1;

  const PathTable& from_;
  const PathTable& to_;
  std::vector<PathId> known_;
};

// One target of two builds, compared.
class Comparison {
 public:
  Comparison(const BuildGraph& before, const BuildGraph& after,
             const DependencyOptions& options, const BuildConfig& config)
      : before_(before),
        after_(after),
        config_(config),
        old_finder_(before, options),
        new_finder_(after, options),
        to_old_(after.paths(), before.paths()),
        to_new_(before.paths(), after.paths()) {}

  std::vector<RebuildReason> Run(PathId target) {
    std::vector<PathId> left = {target};
    std::unordered_set<PathId> seen = {target};
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

  // The images of who wrote a file last and of those above, up to the job.
  static std::vector<const Image*> CommandsOf(const BuildGraph& graph,
                                              const DependencyFinder& finder,
                                              PathId path) {
    constexpr size_t kMost = 16;
    std::vector<const Image*> commands;
    ExecutionId at = graph.LastWriterOf(path);
    while (commands.size() < kMost) {
      commands.push_back(graph.executions()[at].image.get());
      const ProcessId process = graph.ProcessOf(at);
      if (finder.IsJob(process)) break;
      at = graph.ParentExecution(process);
    }
    return commands;
  }

  // Whether they differ in more than made-up names; says so then.
  bool CompareCommands(PathId target, const Image& before, const Image& after) {
    const std::string was = before.CommandLine();
    const std::string is = after.CommandLine();
    if (WithoutTemporaryNames(was) == WithoutTemporaryNames(is)) return false;
    Add(Kind::kCommand, target, {}, was, is);
    return true;
  }

  void CompareMakers(PathId target, PathId old) {
    const auto before = CommandsOf(before_, old_finder_, old);
    const auto after = CommandsOf(after_, new_finder_, target);
    const auto is_driver = [&](const Image* image) {
      return IsDriver(config_, *image);
    };
    const auto old_driver = std::ranges::find_if(before, is_driver);
    const auto new_driver = std::ranges::find_if(after, is_driver);
    if (old_driver != before.end() && new_driver != after.end() &&
        CompareCommands(target, **old_driver, **new_driver)) {
      return;
    }
    for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
      if (CompareCommands(target, *before[i], *after[i])) return;
    }
  }

  // What its writers read, in order; in place of temporary files that the other
  // build does not have, what the writers of these read.
  static std::vector<PathId> InputsOf(const BuildGraph& graph,
                                      DependencyFinder& finder,
                                      PathTranslation& other, PathId path) {
    std::vector<PathId> inputs;
    std::set<std::pair<ExecutionId, bool>> groups;
    std::unordered_set<PathId> expanded = {path};
    std::vector<PathId> left = {path};
    const auto is_passed_on = [&](PathId input) {
      return graph.LastWriterOf(input) != kNobody &&
             other.Of(input) == PathTable::kNone &&
             IsTemporary(graph.paths().Text(input));
    };
    while (!left.empty()) {
      const PathId at = left.back();
      left.pop_back();
      for (const ExecutionId writer : graph.WritersOf(at)) {
        const DependencyFinder::Group group = finder.GroupOf(writer);
        if (!groups.insert({group.root, group.tree}).second) continue;
        const PathList reads = finder.ReadsOf(group);
        for (const PathId input : *reads) {
          if (!is_passed_on(input)) {
            inputs.push_back(input);
          } else if (expanded.insert(input).second) {
            left.push_back(input);
          }
        }
      }
    }
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    std::erase(inputs, path);
    return inputs;
  }

  static std::string FactsText(const PathFacts& facts) {
    return std::to_string(facts.size) + " bytes, modified at " +
           TimeSpecText(facts.mtime_ns, /*utc=*/false);
  }

  // Those of `inputs` that are not among `others`, in order of their names.
  static std::vector<std::string> Missing(const BuildGraph& graph,
                                          const std::vector<PathId>& inputs,
                                          PathTranslation& translation,
                                          const std::vector<PathId>& others) {
    std::vector<std::string> names;
    for (const PathId path : inputs) {
      const PathId there = translation.Of(path);
      if (there == PathTable::kNone ||
          !std::binary_search(others.begin(), others.end(), there)) {
        names.push_back(graph.paths().Text(path));
      }
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  // What is to be told of an input that both builds read.
  RebuildReason::Kind ChangeOf(PathId path) {
    if (after_.LastWriterOf(path) != kNobody) return Kind::kInputMade;
    const PathFacts& was = before_.Facts(to_old_.Of(path));
    const PathFacts& is = after_.Facts(path);
    const bool known = was.mtime_ns != 0 && is.mtime_ns != 0;
    const bool other = was.mtime_ns != is.mtime_ns || was.size != is.size;
    return known && other ? Kind::kInputChanged : Kind::kNothingSeen;
  }

  // Adds the reasons of one target; returns those inputs that were made again.
  std::vector<PathId> Compare(PathId target) {
    std::vector<PathId> made;
    const size_t before_count = reasons_.size();
    const PathId old = to_old_.Of(target);
    if (old == PathTable::kNone || before_.LastWriterOf(old) == kNobody) {
      Add(Kind::kNew, target);
      return made;
    }
    CompareMakers(target, old);
    const std::vector<PathId> old_inputs =
        InputsOf(before_, old_finder_, to_new_, old);
    const std::vector<PathId> new_inputs =
        InputsOf(after_, new_finder_, to_old_, target);
    for (const std::string& path :
         Missing(after_, new_inputs, to_old_, old_inputs)) {
      Add(Kind::kInputAdded, target, path);
    }
    for (const std::string& path :
         Missing(before_, old_inputs, to_new_, new_inputs)) {
      Add(Kind::kInputRemoved, target, path);
    }
    std::vector<std::pair<std::string, PathId>> changed;
    for (const PathId path : new_inputs) {
      if (!std::binary_search(old_inputs.begin(), old_inputs.end(),
                              to_old_.Of(path))) {
        continue;
      }
      if (ChangeOf(path) == Kind::kNothingSeen) continue;
      changed.emplace_back(after_.paths().Text(path), path);
    }
    std::sort(changed.begin(), changed.end());
    for (auto& [name, path] : changed) {
      if (ChangeOf(path) == Kind::kInputMade) {
        Add(Kind::kInputMade, target, std::move(name));
        made.push_back(path);
        continue;
      }
      Add(Kind::kInputChanged, target, std::move(name),
          FactsText(before_.Facts(to_old_.Of(path))),
          FactsText(after_.Facts(path)));
    }
    if (reasons_.size() == before_count) Add(Kind::kNothingSeen, target);
    return made;
  }

  const BuildGraph& before_;
  const BuildGraph& after_;
  const BuildConfig& config_;
  DependencyFinder old_finder_;
  DependencyFinder new_finder_;
  PathTranslation to_old_;
  PathTranslation to_new_;
  std::vector<RebuildReason> reasons_;
};

}  // namespace

std::vector<RebuildReason> WhyRebuilt(const BuildGraph& before,
                                      const BuildGraph& after,
                                      const DependencyOptions& options,
                                      const BuildConfig& config,
                                      PathId target) {
  if (after.LastWriterOf(target) == kNobody) return {};
  return Comparison(before, after, options, config).Run(target);
}

}  // namespace tracefs::build
