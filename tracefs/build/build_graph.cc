#include "tracefs/build/build_graph.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace tracefs::build {

std::string_view DoubleWriteName(DoubleWrite::Kind kind) {
  switch (kind) {
    case DoubleWrite::Kind::kRewritten:
      return "rewritten";
    case DoubleWrite::Kind::kRecreated:
      return "recreated";
    case DoubleWrite::Kind::kReplaced:
      return "replaced";
  }
  return {};
}

std::vector<BuildGraph::PathUse> BuildGraph::UsesOfPath(PathId path) const {
  std::vector<PathUse> result;
  if (path >= paths_.size()) return result;
  for (uint32_t i = path_begin_[path]; i < path_begin_[path + 1]; ++i) {
    const uint32_t use = path_uses_[i].use;
    result.push_back({path_uses_[i].execution, &uses_[use],
                      times_.empty() ? nullptr : &times_[use]});
  }
  return result;
}

bool BuildGraph::IsWriter(ExecutionId execution, PathId path) const {
  const auto writes = [&](ExecutionId id) {
    const std::span<const FileUse> uses = UsesOf(id);
    const auto use = std::ranges::lower_bound(uses, path, {}, &FileUse::path);
    return use != uses.end() && use->path == path && use->Writes();
  };
  return writes(execution) &&
         std::ranges::none_of(From(execution).subspan(1), writes);
}

std::vector<ExecutionId> BuildGraph::WritersOf(PathId path) const {
  std::vector<ExecutionId> writers;
  for (const PathUse& use : UsesOfPath(path)) {
    if (use.use->Writes() && IsWriter(use.execution, path)) {
      writers.push_back(use.execution);
    }
  }
  return writers;
}

std::span<const ProcessId> BuildGraph::Subtree(ProcessId root) const {
  return std::span(walk_).subspan(walk_at_[root], walk_size_[root]);
}

bool BuildGraph::IsInSubtree(ProcessId process, ProcessId root) const {
  return walk_at_[process] - walk_at_[root] < walk_size_[root];
}

std::span<const ExecutionId> BuildGraph::UpTo(ExecutionId id) const {
  const GraphExecution& execution = executions_[id];
  return std::span(processes_[execution.process].executions)
      .first(execution.index + size_t{1});
}

std::span<const ExecutionId> BuildGraph::From(ExecutionId id) const {
  const GraphExecution& execution = executions_[id];
  return std::span(processes_[execution.process].executions)
      .subspan(execution.index);
}

ExecutionId BuildGraph::ParentExecution(ProcessId process) const {
  const GraphProcess& child = processes_[process];
  if (child.parent == kNobody) return kNobody;
  const GraphProcess& parent = processes_[child.parent];
  return parent.executions[std::min<size_t>(child.parent_index,
                                            parent.executions.size() - 1)];
}

std::string BuildGraph::NameOfProcess(ProcessId id) const {
  return NameOfExecution(processes_[id].executions.back());
}

std::string BuildGraph::NameOfExecution(ExecutionId id) const {
  const GraphExecution& execution = executions_[id];
  const GraphProcess& process = processes_[execution.process];
  std::string name = execution.CommandLine();
  if (name.empty()) name = execution.image->Binary();
  if (name.empty()) name = process.comm;
  if (name.empty()) name = "?";
  return name + " (" + std::to_string(process.key.pid) + ")";
}

void GraphBuilder::ProcessBegan(const Process& process) {
  graph_.processes_.resize(process.id + size_t{1});
}

void GraphBuilder::ExecutionBegan(const Process& process) {
  graph_.executions_.resize(process.now.id + size_t{1});
  graph_.processes_[process.id].executions.push_back(process.now.id);
  pipes_.ExecutionBegan(process);
  if (process.now.index == 0) return;
  held_.ForEachNotWritten(process.id, [&](PathId path) {
    collector_.Inherit(process.now.id, path, process.now.begin_ns);
  });
}

void GraphBuilder::NoteWrite(const Process& process, const FileStep& step,
                             PathId path, uint16_t access, uint64_t inode) {
  if (path >= writes_.size()) writes_.resize(graph_.paths_.size());
  LastWrite& last = writes_[path];
  if ((access & kRemove) != 0) last.removed = true;
  if ((access & kWrite) == 0 || (access & kFolder) != 0) return;
  if (last.process != kNobody && last.process != process.id) {
    using Kind = DoubleWrite::Kind;
    const bool made_again =
        last.removed || (access & kCreate) != 0 ||
        (last.inode != 0 && inode != 0 && last.inode != inode);
    const Kind kind = step.op == Op::rename_ ? Kind::kReplaced
                      : made_again           ? Kind::kRecreated
                                             : Kind::kRewritten;
    graph_.double_writes_.push_back({.path = path,
                                     .kind = kind,
                                     .first = last.execution,
                                     .second = process.now.id,
                                     .first_ns = last.ns,
                                     .second_ns = step.time_ns});
  }
  last = {process.id, process.now.id, step.time_ns, inode, false};
}

void GraphBuilder::Did(const Process& process, const FileStep& step) {
  const StepPaths paths = step_paths_.Of(step);
  collector_.Add(process.now.id, step, paths);
  held_.Note(process.id, step, paths);
  const uint16_t exchanges = Exchanges(step) ? kExchange : kNoAccess;
  facts_.Note(step, paths, [&](PathId from, PathId to) {
    // What is in a directory that is moved comes from the old name of each.
    if (from >= writes_.size() || writes_[from].process == kNobody) return;
    collector_.Add(process.now.id, from, kRead | kRemove | exchanges,
                   step.time_ns);
    collector_.Add(process.now.id, to, kWrite | kCreate | exchanges,
                   step.time_ns);
  });
  if (step.error != 0) return;
  const AccessPair access = AccessOf(step);
  constexpr uint16_t kMatters = kWrite | kRemove;
  if (paths.path != PathTable::kNone && (access.path & kMatters) != 0) {
    // What an exchange puts there is the other file.
    NoteWrite(process, step, paths.path, access.path,
              exchanges == 0 ? step.inode : 0);
  }
  if (paths.path2 == PathTable::kNone) return;
  if ((access.path2 & kMatters) != 0) {
    const bool copies = HasTwoFiles(step.op);
    NoteWrite(process, step, paths.path2, access.path2,
              copies ? step.inode_out : step.inode);
  }
}

void GraphBuilder::Ran(const Process& process, const ProcessRecord& record) {
  if (record.kind == ProcessRecord::Kind::kPipes) {
    pipes_.Add(process, record.pipes);
  }
  // The connector tells of an end after the parent has been told.
  if (record.kind == ProcessRecord::Kind::kExit &&
      record.source == ProcessSource::kConnector) {
    GraphProcess& mine = graph_.processes_[process.id];
    mine.late_end = true;
    mine.end_ns = process.now.end_ns;
  }
}

void GraphBuilder::ExecutionEnded(const Process& process) {
  GraphExecution& execution = graph_.executions_[process.now.id];
  execution.process = process.id;
  execution.index = process.now.index;
  execution.begin_ns = process.now.begin_ns;
  execution.end_ns = process.now.end_ns;
  execution.image = process.now.image;
  const std::vector<Use> uses = collector_.Take(process.now.id);
  execution.first_use = graph_.uses_.size();
  execution.use_count = uses.size();
  graph_.uses_.insert(graph_.uses_.end(), uses.begin(), uses.end());
  graph_.times_.insert(graph_.times_.end(), uses.begin(), uses.end());
}

void GraphBuilder::ProcessEnded(const Process& process) {
  held_.Forget(process.id);
  GraphProcess& mine = graph_.processes_[process.id];
  mine.key = process.key;
  mine.parent = process.parent;
  mine.parent_pid = process.parent_pid;
  mine.parent_index = process.parent_index;
  mine.begin_ns = process.begin_ns;
  if (!mine.late_end) mine.end_ns = process.end_ns;
  mine.recorded = process.recorded;
  mine.ended = process.ended;
  mine.comm = process.comm;
}

void BuildGraph::IndexPaths() {
  path_begin_.assign(paths_.size() + 1, 0);
  for (const FileUse& use : uses_) ++path_begin_[use.path + 1];
  for (size_t i = 1; i < path_begin_.size(); ++i) {
    path_begin_[i] += path_begin_[i - 1];
  }
  std::vector<uint32_t> at(path_begin_.begin(), path_begin_.end() - 1);
  path_uses_.resize(uses_.size());
  for (ExecutionId id = 0; id < executions_.size(); ++id) {
    const GraphExecution& execution = executions_[id];
    for (size_t i = 0; i < execution.use_count; ++i) {
      const size_t number = execution.first_use + i;
      path_uses_[at[uses_[number].path]++] = {id,
                                              static_cast<uint32_t>(number)};
    }
  }
}

void GraphBuilder::FindLastWriters() {
  graph_.last_writers_.assign(graph_.paths_.size(), kNobody);
  std::vector<uint64_t> written_ns(graph_.paths_.size(), 0);
  for (ExecutionId id = 0; id < graph_.executions_.size(); ++id) {
    const GraphExecution& execution = graph_.executions_[id];
    for (size_t i = 0; i < execution.use_count; ++i) {
      const size_t number = execution.first_use + i;
      const FileUse& use = graph_.uses_[number];
      const uint64_t write_ns = graph_.times_[number].last_write_ns;
      ExecutionId& writer = graph_.last_writers_[use.path];
      if (use.Writes() &&
          (writer == kNobody || write_ns > written_ns[use.path])) {
        writer = id;
        written_ns[use.path] = write_ns;
      }
    }
  }
}

// Without records a parent may have been met after its child.
void GraphBuilder::FindParents() {
  std::vector<GraphProcess>& processes = graph_.processes_;
  std::unordered_map<uint32_t, ProcessId> by_pid;
  for (ProcessId id = 0; id < processes.size(); ++id) {
    by_pid.emplace(processes[id].key.pid, id);
  }
  // Towards the top of the tree that each is in so far, with shortcuts: a chain
  // of a million processes is gone through once.
  std::vector<ProcessId> up(processes.size());
  for (ProcessId id = 0; id < up.size(); ++id) {
    up[id] = processes[id].parent == kNobody ? id : processes[id].parent;
  }
  const auto top_of = [&](ProcessId id) {
    while (up[id] != id) id = up[id] = up[up[id]];
    return id;
  };
  for (ProcessId id = 0; id < processes.size(); ++id) {
    GraphProcess& process = processes[id];
    if (process.parent != kNobody || process.parent_pid == 0) continue;
    const auto parent = by_pid.find(process.parent_pid);
    // A process without a parent is the top of a tree, and no process of that
    // tree can be its parent.
    if (parent == by_pid.end() || top_of(parent->second) == id) continue;
    process.parent = up[id] = parent->second;
  }
}

bool BuildGraph::WalkTree() {
  const size_t count = processes_.size();
  std::vector<std::vector<ProcessId>> children(count);
  std::vector<ProcessId> left;
  for (ProcessId id = static_cast<ProcessId>(count); id-- > 0;) {
    const ProcessId parent = processes_[id].parent;
    if (parent == kNobody) {
      left.push_back(id);
    } else {
      children[parent].push_back(id);
    }
  }
  walk_at_.resize(count);
  walk_size_.assign(count, 1);
  while (!left.empty()) {
    const ProcessId id = left.back();
    left.pop_back();
    walk_at_[id] = static_cast<uint32_t>(walk_.size());
    walk_.push_back(id);
    left.insert(left.end(), children[id].begin(), children[id].end());
  }
  if (walk_.size() != count) return false;
  for (size_t i = count; i-- > 0;) {
    const ProcessId id = walk_[i];
    const ProcessId parent = processes_[id].parent;
    if (parent != kNobody) walk_size_[parent] += walk_size_[id];
  }
  return true;
}

BuildGraph GraphBuilder::Finish() {
  tracker_.Finish();
  graph_.has_process_records_ = tracker_.any_records();
  graph_.unknown_copies_ = step_paths_.unknown_destinations();
  graph_.facts_ = facts_.Take();
  graph_.pipes_ = pipes_.Match();
  graph_.crowded_pipes_ = pipes_.crowded();
  graph_.IndexPaths();
  FindLastWriters();
  FindParents();
  static_cast<void>(graph_.WalkTree());
  return std::move(graph_);
}

}  // namespace tracefs::build
