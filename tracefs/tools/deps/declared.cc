#include "tracefs/tools/deps/declared.h"

#include <sys/stat.h>

#include <algorithm>
#include <optional>

#include "tracefs/base/absolute_path.h"
#include "tracefs/base/printable.h"
#include "tracefs/base/text.h"
#include "tracefs/build/patterns.h"

namespace tracefs {
namespace {

using build::BuildGraph;
using build::DependencyFinder;
using build::ExecutionId;
using build::PathId;
using build::ProcessId;

std::string_view TakeLine(std::string_view& text) {
  std::string_view line = TakeUpTo(text, '\n');
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// The text between the first two quotes from `at` on; `at` is then after them.
std::optional<std::string> Quoted(std::string_view line, size_t* at) {
  const size_t begin = line.find('"', *at);
  if (begin == line.npos) return std::nullopt;
  const size_t end = line.find('"', begin + 1);
  if (end == line.npos) return std::nullopt;
  *at = end + 1;
  return std::string(line.substr(begin + 1, end - begin - 1));
}

// digraph ninja { … }: files and commands are nodes; an edge without one
// between is a command of one file from one.
class NinjaGraph {
 public:
  // False at the closing brace.
  bool Take(std::string_view line) {
    line = Trim(line);
    if (line == "}") return false;
    size_t at = 0;
    const std::optional<std::string> from = Quoted(line, &at);
    if (!from) return true;
    if (line.substr(at).starts_with(" -> ")) {
      const std::optional<std::string> to = Quoted(line, &at);
      if (to) edges_.emplace_back(*from, *to);
      return true;
    }
    const std::optional<std::string> label = Quoted(line, &at);
    if (!label) return true;
    if (line.find("shape=ellipse") == line.npos) {
      files_[*from] = *label;
    } else {
      commands_.insert(*from);
    }
    return true;
  }

  void AddTo(Declared* declared) const {
    std::map<std::string, std::set<std::string>> outputs_of;
    for (const auto& [from, to] : edges_) {
      if (commands_.contains(from)) outputs_of[from].insert(to);
    }
    for (const auto& [from, to] : edges_) {
      const auto input = files_.find(from);
      if (input == files_.end()) continue;
      if (const auto output = files_.find(to); output != files_.end()) {
        declared->inputs[output->second].insert(input->second);
        continue;
      }
      for (const std::string& output : outputs_of[to]) {
        if (const auto file = files_.find(output); file != files_.end()) {
          declared->inputs[file->second].insert(input->second);
        }
      }
    }
  }

 private:
  std::map<std::string, std::string> files_;
  std::set<std::string> commands_;
  std::vector<std::pair<std::string, std::string>> edges_;
};

}  // namespace

Result<Declared> ParseNinja(std::string_view text, const std::string& name) {
  Declared declared;
  enum { kNothing, kDeps, kInputs, kOutputs } part = kNothing;
  std::optional<NinjaGraph> graph;
  std::string output;
  size_t number = 0;
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    ++number;
    if (graph) {
      if (graph->Take(line)) continue;
      graph->AddTo(&declared);
      graph.reset();
    } else if (line.empty()) {
      part = kNothing;
    } else if (line.starts_with("digraph ")) {
      graph.emplace();
    } else if (const size_t deps = line.find(": #deps "); deps != line.npos) {
      output = line.substr(0, deps);
      declared.inputs[output];
      part = kDeps;
    } else if (line == "  outputs:") {
      part = kOutputs;
    } else if (line.starts_with("  input: ")) {
      declared.inputs[output];
      part = kInputs;
    } else if (line.starts_with("    ") && part != kNothing) {
      std::string_view input = line.substr(4);
      if (part == kOutputs) continue;
      if (part == kInputs) {
        while (input.starts_with('|')) input.remove_prefix(1);
      }
      declared.inputs[output].emplace(Trim(input));
    } else if (line.ends_with(':') && !line.starts_with(' ')) {
      output = line.substr(0, line.size() - 1);
      part = kNothing;
    } else if (line.ends_with(": deps not found")) {
      continue;
    } else {
      return Status::Corrupt(Printable(name) + ":" + std::to_string(number) +
                             ": not what ninja -t deps, query or graph prints");
    }
  }
  if (graph) {
    return Status::Corrupt(Printable(name) + ": the graph has no end");
  }
  return declared;
}

Result<Declared> ParseMake(std::string_view text, const std::string& name) {
  // The data base of files stands at the end.
  const size_t files = text.find("\n# Files\n");
  if (files == text.npos) {
    return Status::Corrupt(Printable(name) +
                           ": not what make -pn prints: it has no \"# Files\"");
  }
  text.remove_prefix(files + 9);
  Declared declared;
  bool skip = false;
  while (!text.empty()) {
    const std::string_view line = TakeLine(text);
    if (line == "# Not a target:") {
      skip = true;
      continue;
    }
    if (line.starts_with("# files hash-table stats")) break;
    if (line.empty()) {
      skip = false;
      continue;
    }
    if (skip || line.starts_with('#') || line.starts_with('\t')) continue;
    const size_t colon = line.find(':');
    if (colon == line.npos || colon == 0) continue;
    const std::string target(line.substr(0, colon));
    std::string_view rest = line.substr(colon + 1);
    if (rest.starts_with(':')) rest.remove_prefix(1);
    // A variable of this target, or a built-in name.
    if (rest.find('=') != rest.npos || target.find('%') != target.npos ||
        (target.starts_with('.') && target.find('/') == target.npos)) {
      continue;
    }
    std::set<std::string>& inputs = declared.inputs[target];
    while (!rest.empty()) {
      const std::string_view word = TakeUpTo(rest, ' ');
      if (!word.empty() && word != "|") inputs.emplace(word);
    }
  }
  return declared;
}

namespace {

class Comparer {
 public:
  Comparer(const Declared& declared, const std::string& folder,
           const std::string& inside, const BuildGraph& graph,
           const build::DependencyOptions& options)
      : graph_(graph),
        options_(options),
        finder_(graph, options),
        inside_(inside.ends_with('/') ? inside : inside + "/") {
    for (const auto& [output, inputs] : declared.inputs) {
      std::set<std::string>& mine = inputs_[AbsolutePath(folder, output)];
      for (const std::string& input : inputs) {
        mine.insert(AbsolutePath(folder, input));
      }
    }
  }

  DeclaredDifference Run() {
    for (const auto& [output, inputs] : inputs_) Compare(output, inputs);
    std::sort(result_.undeclared_outputs.begin(),
              result_.undeclared_outputs.end());
    auto& outputs = result_.undeclared_outputs;
    outputs.erase(std::unique(outputs.begin(), outputs.end()), outputs.end());
    return std::move(result_);
  }

 private:
  // All that is declared, on and on: what an input is made of is declared, too.
  const std::set<std::string>& AllInputs(const std::string& output) {
    const auto known = all_.find(output);
    if (known != all_.end()) return known->second;
    std::set<std::string> all;
    std::vector<std::string> left = {output};
    while (!left.empty()) {
      const std::string at = std::move(left.back());
      left.pop_back();
      const auto inputs = inputs_.find(at);
      if (inputs == inputs_.end()) continue;
      for (const std::string& input : inputs->second) {
        if (all.insert(input).second) left.push_back(input);
      }
    }
    return all_[output] = std::move(all);
  }

  bool Counts(const std::string& path) const {
    return path.starts_with(inside_) &&
           !build::MatchesAny(options_.exclude_files, path);
  }

  bool IsFolder(PathId path) const {
    return graph_.Facts(path).type == S_IFDIR >> 12;
  }

  void Compare(const std::string& output,
               const std::set<std::string>& declared) {
    const PathId path = graph_.paths().Find(output);
    // Each job, up to the program that was the last of it to write the file.
    std::map<ProcessId, ExecutionId> jobs;
    for (const ExecutionId writer : graph_.WritersOf(path)) {
      const ExecutionId job = finder_.JobOf(writer);
      ExecutionId& last =
          jobs.try_emplace(graph_.ProcessOf(job), job).first->second;
      if (graph_.executions()[job].index > graph_.executions()[last].index) {
        last = job;
      }
    }
    if (jobs.empty()) {
      // It may be up to date, a mere name or a directory.
      const bool there =
          path != build::PathTable::kNone && !graph_.UsesOfPath(path).empty();
      if (!there) result_.never_made.push_back(output);
      return;
    }
    std::set<std::string> used;
    for (const auto& [process, job] : jobs) {
      const DependencyFinder::Group group = {job, true};
      for (const PathId read : *finder_.ReadsOf(group)) {
        const std::string input = graph_.paths().Text(read);
        used.insert(input);
        if (input == output || !Counts(input) || IsFolder(read) ||
            AllInputs(output).contains(input)) {
          continue;
        }
        result_.undeclared_inputs.push_back(
            {output, input, graph_.NameOfExecution(job)});
      }
      AddOutputs(output, job);
    }
    for (const std::string& input : declared) {
      if (used.contains(input) || !Counts(input)) continue;
      const PathId id = graph_.paths().Find(input);
      const bool file = id != build::PathTable::kNone && !IsFolder(id) &&
                        graph_.Facts(id).type != 0;
      if (file) result_.unused_inputs.push_back({output, input, ""});
    }
  }

  void AddOutputs(const std::string& output, ExecutionId job) {
    for (const ExecutionId id : finder_.MembersOf({job, true})) {
      for (const build::FileUse& use : graph_.UsesOf(id)) {
        if (!use.Writes() || graph_.Facts(use.path).gone) continue;
        const std::string made = graph_.paths().Text(use.path);
        if (inputs_.contains(made) || !Counts(made)) continue;
        result_.undeclared_outputs.push_back(
            {output, made, graph_.NameOfExecution(job)});
      }
    }
  }

  const BuildGraph& graph_;
  const build::DependencyOptions& options_;
  DependencyFinder finder_;
  const std::string inside_;
  std::map<std::string, std::set<std::string>> inputs_;
  std::map<std::string, std::set<std::string>> all_;
  DeclaredDifference result_;
};

}  // namespace

DeclaredDifference CompareDeclared(const Declared& declared,
                                   const std::string& folder,
                                   const std::string& inside,
                                   const BuildGraph& graph,
                                   const build::DependencyOptions& options) {
  return Comparer(declared, folder, inside, graph, options).Run();
}

}  // namespace tracefs
