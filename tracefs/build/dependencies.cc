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

// Executions in the order in which they came, each once.
class ExecutionList {
 public:
  void Add(ExecutionId execution) {
    // Most files have one writer: a set of one is not worth its memory.
    if (list_.size() < kFew) {
      if (std::ranges::find(list_, execution) != list_.end()) return;
    } else {
      if (known_.empty()) known_.insert(list_.begin(), list_.end());
      if (!known_.insert(execution).second) return;
    }
    list_.push_back(execution);
  }
  size_t size() const { return list_.size(); }
  ExecutionId operator[](size_t i) const { return list_[i]; }
  std::vector<ExecutionId> Take() { return std::move(list_); }

 private:
  static constexpr size_t kFew = 16;
  std::vector<ExecutionId> list_;
  std::unordered_set<ExecutionId> known_;
};

// The first execution of the reader that can read what the writer wrote into
// their pipe. What it had as it began, the program before had as well; but not
// what a child writes that was not there then.
ExecutionId FirstReader(const BuildGraph& graph, const PipeEdge& edge) {
  const std::vector<GraphExecution>& executions = graph.executions();
  const GraphExecution& reader = executions[edge.reader.id];
  const bool earlier =
      reader.index > 0 && executions[edge.writer.id].begin_ns < reader.begin_ns;
  return earlier ? graph.UpTo(edge.reader.id)[reader.index - size_t{1}]
                 : edge.reader.id;
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
         graph.WritersOf(use.path).size() == 1;
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
  const size_t count = graph.executions().size();
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
        excluded_commands_[id] = 1;
      }
    }
  }
  std::vector<ExecutionList> writers(count);
  std::vector<ExecutionList> readers(count);
  for (const PipeEdge& edge : graph.pipes()) {
    const ExecutionId reader = FirstReader(graph, edge);
    writers[reader].Add(edge.writer.id);
    readers[edge.writer.id].Add(reader);
  }
  for (ExecutionList& list : writers) pipe_writers_.push_back(list.Take());
  for (ExecutionList& list : readers) pipe_readers_.push_back(list.Take());
}

bool DependencyFinder::ParentRuns(const std::vector<std::string>& patterns,
                                  ProcessId process) const {
  const GraphProcess& parent =
      graph_.processes()[graph_.processes()[process].parent];
  const Image& image =
      *graph_.executions()[graph_.ParentExecution(process)].image;
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
  const ExecutionId above = graph_.ParentExecution(process);
  return ParentInRun(parent) == kNobody && graph_.has_process_records() &&
         !IsDriver(options_.programs,
                   Launched(*graph_.executions()[above].image));
}

ExecutionId DependencyFinder::JobOf(ExecutionId execution) const {
  ProcessId process = graph_.ProcessOf(execution);
  while (!IsJob(process)) {
    execution = graph_.ParentExecution(process);
    process = graph_.ProcessOf(execution);
  }
  return execution;
}

std::vector<ExecutionId> DependencyFinder::MembersOf(const Group& group) const {
  const std::span<const ExecutionId> own = graph_.UpTo(group.root);
  std::vector<ExecutionId> members(own.begin(), own.end());
  if (!group.tree) return members;
  const ProcessId root = graph_.ProcessOf(group.root);
  const std::span<const ProcessId> tree = graph_.Subtree(root);
  for (size_t i = 1; i < tree.size();) {
    const GraphProcess& process = graph_.processes()[tree[i]];
    const bool later =
        process.parent == root && process.parent_index >= own.size();
    if (later || (!options_.wrap && IsJob(tree[i]))) {
      i += graph_.Subtree(tree[i]).size();
    } else {
      members.insert(members.end(), process.executions.begin(),
                     process.executions.end());
      ++i;
    }
  }
  return members;
}

template <typename Visit>
void DependencyFinder::ForEachUse(const Group& group, Visit visit) const {
  for (const ExecutionId id : MembersOf(group)) {
    for (const FileUse& use : graph_.UsesOf(id)) visit(id, use);
  }
}

// Sorted: most groups write one file or two. What an exchange put there was
// made before.
std::vector<PathId> DependencyFinder::WrittenBy(const Group& group) const {
  std::vector<PathId> written;
  ForEachUse(group, [&](ExecutionId, const FileUse& use) {
    if (use.Writes() && !use.Has(kExchange)) written.push_back(use.path);
  });
  std::sort(written.begin(), written.end());
  return written;
}

bool DependencyFinder::HasInput(const Group& group) const {
  const std::vector<PathId> written = WrittenBy(group);
  bool found = false;
  ForEachUse(group, [&](ExecutionId, const FileUse& use) {
    const bool reads = use.open_mode == 0 || use.Has(kExchange);
    found = found || (reads && !use.Has(kRun) && !IsAmong(written, use.path)) ||
            (!group.tree && ReadsBeforeItWrites(graph_, use));
  });
  return found;
}

bool DependencyFinder::TreeHasInput(ExecutionId root) {
  char& known = tree_inputs_[root];
  if (known == 0) known = HasInput({root, true}) ? 2 : 1;
  return known == 2;
}

// Of each process the last program that did.
std::vector<ExecutionId> DependencyFinder::PipedTo(
    ExecutionId execution) const {
  std::vector<ExecutionId> writers;
  for (const ExecutionId id : graph_.UpTo(execution)) {
    for (const ExecutionId writer : pipe_writers_[id]) {
      const auto same = std::ranges::find(
          writers, graph_.ProcessOf(writer),
          [&](ExecutionId other) { return graph_.ProcessOf(other); });
      if (same == writers.end()) {
        writers.push_back(writer);
      } else if (graph_.executions()[writer].index >
                 graph_.executions()[*same].index) {
        *same = writer;
      }
    }
  }
  return writers;
}

// Through a pipe something came in.
bool DependencyFinder::IsPiped(ExecutionId execution) const {
  return std::ranges::any_of(graph_.UpTo(execution), [&](ExecutionId id) {
    return !pipe_writers_[id].empty();
  });
}

DependencyFinder::Group DependencyFinder::FindGroup(ExecutionId execution) {
  const auto above = [&](ExecutionId id) {
    return graph_.ParentExecution(graph_.ProcessOf(id));
  };
  if (options_.wrap) {
    for (ExecutionId at = execution; above(at) != kNobody; at = above(at)) {
      if (ParentRuns(options_.wrappers, graph_.ProcessOf(at))) {
        return {above(at), true};
      }
    }
  }
  using Closure = DependencyOptions::Closure;
  const ExecutionId job = JobOf(execution);
  if (options_.closure == Closure::kTree) return {job, true};
  const Group own = {execution, false};
  const bool piped = options_.pipes && IsPiped(execution);
  if (options_.closure == Closure::kFlow || piped || HasInput(own)) return own;
  for (ExecutionId at = execution;; at = above(at)) {
    if (TreeHasInput(at)) return {at, true};
    if (at == job) return own;
  }
}

DependencyFinder::Group DependencyFinder::GroupOf(ExecutionId execution) {
  Group& group = groups_[execution];
  if (group.root == kNobody) group = FindGroup(execution);
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
  ForEachUse(group, [&](ExecutionId id, const FileUse& use) {
    if (excluded_commands_[id] != 0) return;
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

// A file that is named by another one is read by whoever reads that; a driver
// reads no others, but for what its own settings are in.
std::vector<PathId> DependencyFinder::ResponseFilesOf(ExecutionId id) const {
  const Image& image = *graph_.executions()[id].image;
  std::vector<PathId> named;
  for (const std::string_view word : image.argv) {
    const std::string_view file = ResponseFile(word);
    if (file.empty()) continue;
    const PathId path = graph_.paths().Find(AbsolutePath(image.cwd, file));
    if (path != PathTable::kNone) named.push_back(path);
  }
  std::vector<PathId> files;
  if (named.empty()) return files;
  std::sort(named.begin(), named.end());
  const bool all = IsDriver(options_.programs, Launched(image));
  for (const FileUse& use : graph_.UsesOf(id)) {
    const bool one = all && !use.Writes() && !use.Has(kRun);
    if (use.Reads() && (one || IsAmong(named, use.path))) {
      files.push_back(use.path);
    }
  }
  return files;
}

// A driver reads them for the programs that it runs.
void DependencyFinder::AddResponseFiles(ExecutionId root,
                                        std::vector<PathId>* reads) const {
  for (ExecutionId at = root; !IsJob(graph_.ProcessOf(at));) {
    at = graph_.ParentExecution(graph_.ProcessOf(at));
    for (const ExecutionId id : graph_.UpTo(at)) {
      const std::vector<PathId> files = ResponseFilesOf(id);
      reads->insert(reads->end(), files.begin(), files.end());
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
                                  ExecutionId execution) const {
  if (excluded_commands_[execution] != 0) return true;
  for (const ModuleRule* rule : chosen.rules) {
    if (!rule->exclude_commands.empty() &&
        MatchesAny(rule->exclude_commands,
                   graph_.executions()[execution].CommandLine())) {
      return true;
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
  Seen seen(graph_.executions().size());
  std::vector<PathId> queue = {target};
  for (size_t i = 0; i < queue.size(); ++i) {
    const PathId path = queue[i];
    if (chosen.direct && path != target &&
        MatchesAny(options_.modules, graph_.paths().Text(path))) {
      continue;
    }
    // Who wrote it and who wrote into their pipes, one after the other.
    ExecutionList writers;
    for (const ExecutionId writer : graph_.WritersOf(path)) writers.Add(writer);
    for (size_t w = 0; w < writers.size(); ++w) {
      const ExecutionId writer = writers[w];
      if (IsExcluded(chosen, writer)) continue;
      if (chosen.pipes) {
        for (const ExecutionId other : PipedTo(writer)) writers.Add(other);
      }
      if (!seen.Add(writer)) continue;
      result.executions.push_back(writer);
      const Group group = GroupOf(writer);
      PathList reads = ReadsOf(group);
      const bool piped = chosen.pipes && IsPiped(writer);
      if (!piped && !HasInput({writer, false})) {
        result.no_inputs.push_back(
            {path, writer, group.tree ? group.root : kNobody});
      }
      for (const PathId read : *reads) {
        if (!seen_files.Add(read)) continue;
        result.files.push_back(read);
        if (!IsExcludedFile(chosen, read)) queue.push_back(read);
      }
      result.steps.push_back({path, writer, std::move(reads)});
    }
    if (chosen.direct && options_.modules.empty()) break;
  }
  return result;
}

void DependencyFinder::FillGroups() {
  if (std::exchange(groups_filled_, true)) return;
  makes_.assign(graph_.executions().size(), 0);
  for (ExecutionId id = 0; id < graph_.executions().size(); ++id) {
    const bool makes =
        !pipe_readers_[id].empty() ||
        std::ranges::any_of(graph_.UsesOf(id), [&](const FileUse& use) {
          return use.Writes() && graph_.IsWriter(id, use.path);
        });
    if (!makes) continue;
    makes_[id] = 1;
    const Group group = GroupOf(id);
    if (group.tree) members_[group.root].push_back(id);
  }
}

template <typename Take>
void DependencyFinder::ForEachTaker(PathId path, const BuildGraph::PathUse& use,
                                    Members* members_left, Take take) {
  if (!use.use->Reads()) return;
  const auto is_read_by = [&](const Group& group) {
    return IsAmong(*ReadsOf(group), path);
  };
  const bool counts = excluded_commands_[use.execution] == 0 &&
                      !IsOwnTemporary(graph_, *use.use);
  for (const ExecutionId id : graph_.From(use.execution)) {
    if (counts && makes_[id] != 0 && !GroupOf(id).tree) take(id);
  }
  // A program that counts as part of a group takes nothing but through it. What
  // a group itself wrote and reads again is no input of it.
  for (ExecutionId at = use.execution; at != kNobody;) {
    for (const ExecutionId root : graph_.From(at)) {
      const auto members = members_left->find(root);
      if (members == members_left->end() || !is_read_by({root, true})) continue;
      for (const ExecutionId member : members->second) take(member);
      // All of them are taken, or will never be.
      members_left->erase(members);
    }
    const ProcessId process = graph_.ProcessOf(at);
    if (!options_.wrap && IsJob(process)) break;
    at = graph_.ParentExecution(process);
  }
  if (!IsAmong(ResponseFilesOf(use.execution), path)) return;
  const ExecutionId last = graph_.From(use.execution).back();
  for (const ExecutionId run : MembersOf({last, true})) {
    if (makes_[run] != 0 && is_read_by(GroupOf(run))) take(run);
  }
}

Dependencies DependencyFinder::MadeFrom(PathId source) {
  FillGroups();
  Dependencies result;
  const Chosen chosen = ChooseFor(source);
  result.written = graph_.LastWriterOf(source) != kNobody;
  Seen seen_files(graph_.paths().size());
  seen_files.Add(source);
  Seen seen(graph_.executions().size());
  Members members_left = members_;
  std::vector<PathId> queue = {source};
  for (size_t i = 0; i < queue.size(); ++i) {
    const PathId path = queue[i];
    std::vector<ExecutionId> taken;  // who got something of the file
    const auto take = [&](ExecutionId execution) {
      if (IsExcluded(chosen, execution) || !seen.Add(execution)) return;
      taken.push_back(execution);
    };
    for (const BuildGraph::PathUse& use : graph_.UsesOfPath(path)) {
      ForEachTaker(path, use, &members_left, take);
    }
    for (size_t t = 0; t < taken.size(); ++t) {
      const ExecutionId execution = taken[t];
      for (const ExecutionId first : pipe_readers_[execution]) {
        if (!chosen.pipes) break;
        for (const ExecutionId reader : graph_.From(first)) {
          if (makes_[reader] != 0 &&
              std::ranges::count(PipedTo(reader), execution) != 0) {
            take(reader);
          }
        }
      }
      std::vector<PathId> made;
      for (const FileUse& use : graph_.UsesOf(execution)) {
        if (!use.Writes() || !graph_.IsWriter(execution, use.path)) continue;
        made.push_back(use.path);
        if (!seen_files.Add(use.path)) continue;
        if (IsExcludedFile(chosen, use.path)) continue;
        result.files.push_back(use.path);
        queue.push_back(use.path);
      }
      if (made.empty()) continue;
      result.executions.push_back(execution);
      result.steps.push_back(
          {path, execution,
           std::make_shared<const std::vector<PathId>>(std::move(made))});
    }
    if (chosen.direct) break;
  }
  return result;
}

}  // namespace tracefs::build
