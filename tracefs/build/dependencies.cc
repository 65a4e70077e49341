#include "tracefs/build/dependencies.h"

#include <algorithm>
#include <span>
#include <unordered_set>
#include <utility>

#include "tracefs/base/absolute_path.h"
#include "tracefs/build/compilation.h"
#include "tracefs/build/patterns.h"

namespace tracefs::build {
namespace {

// Processes in the order in which they came, each once.
class ProcessList {
 public:
  void Add(ProcessId process) {
    // Most files have one writer: a set of one is not worth its memory.
    if (list_.size() < kFew) {
      if (std::find(list_.begin(), list_.end(), process) != list_.end()) return;
    } else {
      if (known_.empty()) known_.insert(list_.begin(), list_.end());
      if (!known_.insert(process).second) return;
    }
    list_.push_back(process);
  }
  bool empty() const { return list_.empty(); }
  size_t size() const { return list_.size(); }
  ProcessId operator[](size_t i) const { return list_[i]; }
  std::vector<ProcessId> Take() { return std::move(list_); }

 private:
  static constexpr size_t kFew = 16;
  std::vector<ProcessId> list_;
  std::unordered_set<ProcessId> known_;
};

ProcessList WritersOf(const BuildGraph& graph, PathId path) {
  ProcessList writers;
  for (const BuildGraph::PathUse& use : graph.UsesOfPath(path)) {
    if (use.use->Writes()) {
      writers.Add(graph.executions()[use.execution].process);
    }
  }
  return writers;
}

// Whether the process read what was there before it wrote it itself, as
// `sed -i` does: the work of another one.
bool ReadsBeforeItWrites(const BuildGraph& graph, const FileUse& use) {
  const UseTimes* const times = graph.TimesOf(use);
  return use.open_mode == 2 && times != nullptr && times->first_read_ns != 0 &&
         times->first_read_ns < times->first_write_ns;
}

// Whether it is a file that it alone wrote, and moved to where it is wanted:
// what went into that is all that can be told.
bool IsOwnTemporary(const BuildGraph& graph, const FileUse& use) {
  const UseTimes* const times = graph.TimesOf(use);
  return use.Has(kCreate) && use.Has(kRemove) && !use.Has(kExchange) &&
         times != nullptr && times->first_write_ns < times->first_read_ns &&
         WritersOf(graph, use.path).size() == 1;
}

// The response files of a command line, sorted.
std::vector<PathId> ResponseFilesOf(const BuildGraph& graph,
                                    const Image& image) {
  std::vector<PathId> files;
  for (const std::string_view word : image.argv) {
    const std::string_view file = ResponseFile(word);
    if (file.empty()) continue;
    const PathId path = graph.paths().Find(AbsolutePath(image.cwd, file));
    if (path != PathTable::kNone) files.push_back(path);
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool IsAmong(const std::vector<PathId>& sorted, PathId path) {
  return std::binary_search(sorted.begin(), sorted.end(), path);
}

// Paths or processes, by their numbers.
class Seen {
 public:
  explicit Seen(size_t count) : seen_(count) {}
  // True the first time.
  bool Add(size_t number) {
    if (seen_[number]) return false;
    return seen_[number] = true;
  }

 private:
  std::vector<bool> seen_;
};

}  // namespace

DependencyFinder::DependencyFinder(const BuildGraph& graph,
                                   DependencyOptions options)
    : graph_(graph), options_(std::move(options)) {
  const size_t count = graph.processes().size();
  excluded_commands_.assign(count, 0);
  groups_.resize(count);
  tree_inputs_.assign(count, 0);
  if (!options_.exclude_commands.empty()) {
    for (ExecutionId id = 0; id < graph.executions().size(); ++id) {
      const GraphExecution& execution = graph.executions()[id];
      const bool matches =
          MatchesAny(options_.exclude_commands, execution.CommandLine());
      // What has no command line yet is not excluded for lacking the words.
      const bool known = !execution.image->argv.empty();
      if (known && matches != options_.negate) {
        excluded_commands_[execution.process] = 1;
      }
    }
  }
  std::vector<ProcessList> writers(count);
  std::vector<ProcessList> readers(count);
  for (const PipeEdge& edge : graph.pipes()) {
    writers[edge.reader.process].Add(edge.writer.process);
    readers[edge.writer.process].Add(edge.reader.process);
  }
  for (ProcessList& list : writers) pipe_writers_.push_back(list.Take());
  for (ProcessList& list : readers) pipe_readers_.push_back(list.Take());
}

// What the parent ran when it forked: it may have run something else before.
const Image& DependencyFinder::ParentImage(ProcessId process) const {
  const GraphProcess& child = graph_.processes()[process];
  const GraphProcess& parent = graph_.processes()[child.parent];
  const size_t index =
      std::min<size_t>(child.parent_index, parent.executions.size() - 1);
  return *graph_.executions()[parent.executions[index]].image;
}

bool DependencyFinder::ParentRuns(const std::vector<std::string>& patterns,
                                  ProcessId process) const {
  const GraphProcess& parent =
      graph_.processes()[graph_.processes()[process].parent];
  const Image& image = ParentImage(process);
  const std::string binary(image.Binary());
  if (!binary.empty() && MatchesAny(patterns, binary)) return true;
  if (!image.argv.empty() && MatchesAny(patterns, image.argv[0])) return true;
  return !parent.recorded && !parent.comm.empty() &&
         MatchesAny(patterns, parent.comm);
}

// Whoever began the whole run (tracefs-run, a shell) may only be told of as its
// parent: the run is the top then.
ProcessId DependencyFinder::ParentInRun(ProcessId process) const {
  const ProcessId parent = graph_.processes()[process].parent;
  if (parent == kNobody || !graph_.has_process_records()) return parent;
  const GraphProcess& above = graph_.processes()[parent];
  return above.parent == kNobody && !above.recorded ? kNobody : parent;
}

bool DependencyFinder::IsJob(ProcessId process) const {
  const ProcessId parent = ParentInRun(process);
  if (parent == kNobody) return true;
  if (ParentRuns(options_.job_makers, process)) return true;
  // The whole run is no job, unless it is one compilation. Without records its
  // top may not be in the trace.
  return ParentInRun(parent) == kNobody && graph_.has_process_records() &&
         !IsDriver(options_.programs, Launched(ParentImage(process)));
}

ProcessId DependencyFinder::JobOf(ProcessId process) const {
  while (!IsJob(process)) process = graph_.processes()[process].parent;
  return process;
}

std::vector<ProcessId> DependencyFinder::MembersOf(const Group& group) const {
  std::vector<ProcessId> members = {group.root};
  if (!group.tree) return members;
  const std::span<const ProcessId> tree = graph_.Subtree(group.root);
  for (size_t i = 1; i < tree.size();) {
    if (!options_.wrap && IsJob(tree[i])) {
      i += graph_.Subtree(tree[i]).size();
    } else {
      members.push_back(tree[i++]);
    }
  }
  return members;
}

template <typename Visit>
void DependencyFinder::ForEachUse(const Group& group, Visit visit) const {
  for (const ProcessId process : MembersOf(group)) {
    for (const ExecutionId id : graph_.processes()[process].executions) {
      for (const FileUse& use : graph_.UsesOf(id)) visit(use);
    }
  }
}

// Sorted: most groups write one file or two. What an exchange put there was
// made before.
std::vector<PathId> DependencyFinder::WrittenBy(const Group& group) const {
  std::vector<PathId> written;
  ForEachUse(group, [&](const FileUse& use) {
    if (use.Writes() && !use.Has(kExchange)) written.push_back(use.path);
  });
  std::sort(written.begin(), written.end());
  return written;
}

bool DependencyFinder::HasInput(const Group& group) const {
  const std::vector<PathId> written = WrittenBy(group);
  bool found = false;
  ForEachUse(group, [&](const FileUse& use) {
    const bool reads = use.open_mode == 0 || use.Has(kExchange);
    found = found || (reads && !use.Has(kRun) && !IsAmong(written, use.path)) ||
            (!group.tree && ReadsBeforeItWrites(graph_, use));
  });
  return found;
}

bool DependencyFinder::TreeHasInput(ProcessId root) {
  char& known = tree_inputs_[root];
  if (known == 0) known = HasInput({root, true}) ? 2 : 1;
  return known == 2;
}

DependencyFinder::Group DependencyFinder::FindGroup(ProcessId process) {
  const auto parent_of = [&](ProcessId id) {
    return graph_.processes()[id].parent;
  };
  if (options_.wrap) {
    for (ProcessId at = process; parent_of(at) != kNobody; at = parent_of(at)) {
      if (ParentRuns(options_.wrappers, at)) return {parent_of(at), true};
    }
  }
  using Closure = DependencyOptions::Closure;
  if (options_.closure == Closure::kTree) return {JobOf(process), true};
  const Group own = {process, false};
  // Through a pipe something came in.
  const bool piped = options_.pipes && !pipe_writers_[process].empty();
  if (options_.closure == Closure::kFlow || piped || HasInput(own)) return own;
  const ProcessId job = JobOf(process);
  for (ProcessId at = process;; at = parent_of(at)) {
    if (TreeHasInput(at)) return {at, true};
    if (at == job) return own;
  }
}

DependencyFinder::Group DependencyFinder::GroupOf(ProcessId process) {
  Group& group = groups_[process];
  if (group.root == kNobody) group = FindGroup(process);
  return group;
}

PathList DependencyFinder::ReadsOf(const Group& group) {
  const auto find = [&] {
    return std::make_shared<const std::vector<PathId>>(FindReads(group));
  };
  if (!group.tree) return find();
  PathList& known = tree_reads_[group.root];
  if (known == nullptr) known = find();
  return known;
}

std::vector<PathId> DependencyFinder::FindReads(const Group& group) const {
  std::vector<PathId> reads;
  ForEachUse(group, [&](const FileUse& use) {
    const bool own = !group.tree && IsOwnTemporary(graph_, use);
    if (use.Reads() && !own) reads.push_back(use.path);
  });
  if (group.tree) {
    const std::vector<PathId> written = WrittenBy(group);
    std::erase_if(reads, [&](PathId path) { return IsAmong(written, path); });
  }
  AddResponseFiles(group.root, &reads);
  std::sort(reads.begin(), reads.end());
  reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
  return reads;
}

// A driver reads them for the programs that it runs.
void DependencyFinder::AddResponseFiles(ProcessId process,
                                        std::vector<PathId>* reads) const {
  while (!IsJob(process)) {
    process = graph_.processes()[process].parent;
    for (const ExecutionId id : graph_.processes()[process].executions) {
      const std::vector<PathId> files =
          ResponseFilesOf(graph_, *graph_.executions()[id].image);
      if (files.empty()) continue;
      for (const FileUse& use : graph_.UsesOf(id)) {
        if (use.Reads() && IsAmong(files, use.path)) {
          reads->push_back(use.path);
        }
      }
    }
  }
}

DependencyFinder::Chosen DependencyFinder::ChooseFor(PathId target) const {
  Chosen chosen = {.target = graph_.paths().Text(target),
                   .direct = options_.direct,
                   .pipes = options_.pipes,
                   .rules = {}};
  for (const ModuleRule& rule : options_.rules) {
    if (!MatchesAny({rule.targets}, chosen.target)) continue;
    chosen.rules.push_back(&rule);
    if (rule.pipes) chosen.pipes = *rule.pipes;
  }
  return chosen;
}

bool DependencyFinder::IsExcludedFile(const Chosen& chosen, PathId path) const {
  const std::string text = graph_.paths().Text(path);
  if (!options_.exclude_files.empty() &&
      MatchesAny(options_.exclude_files, text) != options_.negate) {
    return true;
  }
  for (const ModuleRule* rule : chosen.rules) {
    if (MatchesAny(rule->exclude_files, text)) return true;
  }
  return false;
}

bool DependencyFinder::IsExcluded(const Chosen& chosen,
                                  ProcessId process) const {
  if (excluded_commands_[process] != 0) return true;
  for (const ModuleRule* rule : chosen.rules) {
    if (rule->exclude_commands.empty()) continue;
    for (const ExecutionId id : graph_.processes()[process].executions) {
      if (MatchesAny(rule->exclude_commands,
                     graph_.executions()[id].CommandLine())) {
        return true;
      }
    }
  }
  return false;
}

Dependencies DependencyFinder::Of(PathId target) {
  Dependencies result;
  const Chosen chosen = ChooseFor(target);
  result.written = graph_.LastWriterOf(target) != kNobody;
  if (!result.written || IsExcludedFile(chosen, target)) return result;

  Seen seen_files(graph_.paths().size());
  seen_files.Add(target);
  Seen seen_processes(graph_.processes().size());
  std::vector<PathId> queue = {target};
  for (size_t i = 0; i < queue.size(); ++i) {
    const PathId path = queue[i];
    if (chosen.direct && path != target &&
        MatchesAny(options_.modules, graph_.paths().Text(path))) {
      continue;
    }
    // A process and who wrote into its pipes, one after the other.
    ProcessList writers = WritersOf(graph_, path);
    for (size_t w = 0; w < writers.size(); ++w) {
      const ProcessId process = writers[w];
      if (IsExcluded(chosen, process)) continue;
      if (chosen.pipes) {
        for (const ProcessId other : pipe_writers_[process]) writers.Add(other);
      }
      if (!seen_processes.Add(process)) continue;
      result.processes.push_back(process);
      const Group group = GroupOf(process);
      PathList reads = ReadsOf(group);
      const bool piped = chosen.pipes && !pipe_writers_[process].empty();
      if (!piped && !HasInput({process, false})) {
        result.no_inputs.push_back(
            {path, process, group.tree ? group.root : kNobody});
      }
      for (const PathId read : *reads) {
        if (!seen_files.Add(read)) continue;
        result.files.push_back(read);
        if (!IsExcludedFile(chosen, read)) queue.push_back(read);
      }
      result.steps.push_back({path, process, std::move(reads)});
    }
    if (chosen.direct && options_.modules.empty()) break;
  }
  return result;
}

void DependencyFinder::FillGroups() {
  if (std::exchange(groups_filled_, true)) return;
  for (ProcessId id = 0; id < graph_.processes().size(); ++id) {
    // Into files, or to who reads from its pipes.
    bool writes = !pipe_readers_[id].empty();
    for (const ExecutionId execution : graph_.processes()[id].executions) {
      for (const FileUse& use : graph_.UsesOf(execution))
        writes |= use.Writes();
    }
    if (!writes) continue;
    const Group group = GroupOf(id);
    if (group.tree) members_[group.root].push_back(id);
  }
}

Dependencies DependencyFinder::MadeFrom(PathId source) {
  FillGroups();
  Dependencies result;
  const Chosen chosen = ChooseFor(source);
  result.written = graph_.LastWriterOf(source) != kNobody;
  Seen seen_files(graph_.paths().size());
  seen_files.Add(source);
  std::vector<char> seen(graph_.processes().size(), 0);
  auto members_left = members_;
  std::vector<PathId> queue = {source};
  for (size_t i = 0; i < queue.size(); ++i) {
    const PathId path = queue[i];
    std::vector<ProcessId> taken;  // who got something of the file
    const auto take = [&](ProcessId process) {
      if (seen[process] != 0 || IsExcluded(chosen, process)) return;
      seen[process] = 1;
      taken.push_back(process);
    };
    for (const BuildGraph::PathUse& use : graph_.UsesOfPath(path)) {
      if (!use.use->Reads() || IsOwnTemporary(graph_, *use.use)) continue;
      const GraphExecution& execution = graph_.executions()[use.execution];
      take(execution.process);
      if (!IsAmong(ResponseFilesOf(graph_, *execution.image), path)) continue;
      for (const ProcessId run : MembersOf({execution.process, true})) {
        take(run);
      }
    }
    for (size_t t = 0; t < taken.size(); ++t) {
      const ProcessId process = taken[t];
      if (chosen.pipes) {
        for (const ProcessId reader : pipe_readers_[process]) take(reader);
      }
      for (ProcessId at = process; at != kNobody;
           at = graph_.processes()[at].parent) {
        // What a group itself wrote and reads again is no input of it.
        if (const auto members = members_left.find(at);
            members != members_left.end() &&
            IsAmong(*ReadsOf({at, true}), path)) {
          for (const ProcessId member : members->second) take(member);
          // All of them are taken, or will never be.
          members_left.erase(members);
        }
        if (!options_.wrap && IsJob(at)) break;
      }
      // Who counts as a group takes nothing by himself but through it.
      std::vector<PathId> made;
      for (const ExecutionId id : graph_.processes()[process].executions) {
        for (const FileUse& use : graph_.UsesOf(id)) {
          if (!use.Writes()) continue;
          made.push_back(use.path);
          if (!seen_files.Add(use.path)) continue;
          if (IsExcludedFile(chosen, use.path)) continue;
          result.files.push_back(use.path);
          queue.push_back(use.path);
        }
      }
      if (made.empty()) continue;
      result.processes.push_back(process);
      result.steps.push_back(
          {path, process,
           std::make_shared<const std::vector<PathId>>(std::move(made))});
    }
    if (chosen.direct) break;
  }
  return result;
}

}  // namespace tracefs::build
