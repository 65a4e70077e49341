// BuildGraph: all of a trace that questions about a build are answered from,
// in memory: who ran what, and which files each execution read, wrote, asked
// for. GraphBuilder makes it from what a ProcessTracker tells.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/build/access.h"
#include "tracefs/build/held_files.h"
#include "tracefs/build/path_facts.h"
#include "tracefs/build/path_table.h"
#include "tracefs/build/pipe_matcher.h"
#include "tracefs/build/process_tracker.h"
#include "tracefs/build/step_paths.h"
#include "tracefs/build/use_collector.h"

namespace tracefs::build {

// As a Process, and what it did.
struct GraphProcess {
  ProcessKey key;
  ProcessId parent = kNobody;
  uint32_t parent_pid = 0;
  uint32_t parent_index = 0;
  uint64_t begin_ns = 0;  // forked, or first heard of
  uint64_t end_ns = 0;    // ended, or last heard of
  bool recorded = false;
  bool ended = false;  // its end was recorded
  // Its end may have been told late: `end_ns` is when it was last busy.
  bool late_end = false;
  std::string comm;
  std::vector<ExecutionId> executions;
};

struct GraphExecution {
  ProcessId process = kNobody;
  uint32_t index = 0;
  uint64_t begin_ns = 0;
  uint64_t end_ns = 0;
  std::shared_ptr<const Image> image;
  size_t first_use = 0;  // in BuildGraph::uses()
  size_t use_count = 0;

  std::string CommandLine() const { return image->CommandLine(); }
};

// A file that more than one process wrote.
struct DoubleWrite {
  enum class Kind : uint8_t {
    kRewritten,  // what was there was opened for writing again
    kRecreated,  // it was removed in between, or created again
    kReplaced,   // another file was moved to its name
  };
  PathId path = PathTable::kNone;
  Kind kind{};
  ExecutionId first = kNobody;
  ExecutionId second = kNobody;
  uint64_t first_ns = 0;
  uint64_t second_ns = 0;
};
std::string_view DoubleWriteName(DoubleWrite::Kind kind);

class BuildGraph {
 public:
  const PathTable& paths() const { return paths_; }
  const std::vector<GraphProcess>& processes() const { return processes_; }
  const std::vector<GraphExecution>& executions() const { return executions_; }
  std::span<const FileUse> UsesOf(ExecutionId id) const {
    const GraphExecution& execution = executions_[id];
    return std::span(uses_).subspan(execution.first_use, execution.use_count);
  }
  struct PathUse {
    ExecutionId execution;
    const FileUse* use;
    const UseTimes* times;
  };
  // All uses of a path.
  std::vector<PathUse> UsesOfPath(PathId path) const;
  // Who wrote it: of each process the last program that did, which may have all
  // that those before it have read. In the order in which they came.
  std::vector<ExecutionId> WritersOf(PathId path) const;
  bool IsWriter(ExecutionId execution, PathId path) const;
  // When a use of UsesOf was; null if that is not known.
  const UseTimes* TimesOf(const FileUse& use) const {
    return has_times() ? &times_[static_cast<size_t>(&use - uses_.data())]
                       : nullptr;
  }
  // When each use was is known: without it there is no asking about races.
  bool has_times() const { return times_.size() == uses_.size(); }
  // kNobody if nobody was seen to write it.
  ExecutionId LastWriterOf(PathId path) const { return last_writers_[path]; }
  const PathFacts& Facts(PathId path) const { return facts_[path]; }
  const std::vector<PipeEdge>& pipes() const { return pipes_; }
  const std::vector<DoubleWrite>& double_writes() const {
    return double_writes_;
  }
  bool has_process_records() const { return has_process_records_; }
  // Operations on files whose caller is not known; closing one does not count.
  uint64_t without_caller() const { return without_caller_; }
  // Copies of which the trace does not say what file they wrote.
  uint64_t unknown_copies() const { return unknown_copies_; }
  // Pipes that too many hold to say who read what from whom.
  uint64_t crowded_pipes() const { return crowded_pipes_; }

  // Processes in the order of a walk down their tree: each stands before its
  // descendants, and these directly after it. All of them, or those of a tree.
  const std::vector<ProcessId>& Walk() const { return walk_; }
  std::span<const ProcessId> Subtree(ProcessId root) const;
  // The process itself counts.
  bool IsInSubtree(ProcessId process, ProcessId root) const;
  bool IsAncestor(ProcessId ancestor, ProcessId process) const {
    return ancestor != process && IsInSubtree(process, ancestor);
  }
  ProcessId ProcessOf(ExecutionId id) const { return executions_[id].process; }
  // The executions of its process up to this one: what that has read and
  // opened, this may go on with.
  std::span<const ExecutionId> UpTo(ExecutionId id) const;
  // This one and those after it.
  std::span<const ExecutionId> From(ExecutionId id) const;
  // What a process was forked by; kNobody if that is not known. Its parent may
  // have run something else before, and may afterwards.
  ExecutionId ParentExecution(ProcessId process) const;
  // The execution whose command a process is known by: its last one.
  const GraphExecution& LastExecution(ProcessId process) const {
    return executions_[processes_[process].executions.back()];
  }
  // "gcc -c a.c (812)"; without records its name and number.
  std::string NameOfProcess(ProcessId process) const;
  // Likewise of what it ran then.
  std::string NameOfExecution(ExecutionId id) const;

 private:
  friend class GraphBuilder;
  friend class GraphCodec;

  // What follows from the rest. False, and nothing can be asked, where somebody
  // is his own ancestor.
  bool WalkTree();
  void IndexPaths();

  PathTable paths_;
  std::vector<GraphProcess> processes_;
  std::vector<GraphExecution> executions_;
  std::vector<FileUse> uses_;    // by execution
  std::vector<UseTimes> times_;  // of each
  std::vector<PathFacts> facts_;
  std::vector<PipeEdge> pipes_;
  std::vector<DoubleWrite> double_writes_;
  bool has_process_records_ = false;
  uint64_t without_caller_ = 0;
  uint64_t unknown_copies_ = 0;
  uint64_t crowded_pipes_ = 0;

  struct UseRef {
    ExecutionId execution;
    uint32_t use;
  };
  std::vector<uint32_t> path_begin_;  // into path_uses_; one more than paths
  std::vector<UseRef> path_uses_;
  std::vector<ExecutionId> last_writers_;  // by path
  std::vector<ProcessId> walk_;
  std::vector<uint32_t> walk_at_;    // where each process is in walk_
  std::vector<uint32_t> walk_size_;  // of its subtree
};

// Used by one thread.
class GraphBuilder final : public TrackerListener {
 public:
  GraphBuilder() : tracker_(*this) {}

  void Take(const ProcessRecord& record) { tracker_.Take(record); }
  void Take(const FileStep& step) { tracker_.Take(step); }
  // Once, after all.
  BuildGraph Finish();

 private:
  // Who wrote a path last.
  struct LastWrite {
    ProcessId process = kNobody;
    ExecutionId execution = kNobody;
    uint64_t ns = 0;
    uint64_t inode = 0;
    bool removed = false;
  };

  void ProcessBegan(const Process& process) override;
  void ExecutionBegan(const Process& process) override;
  void Did(const Process& process, const FileStep& step) override;
  void DidWithout(ProcessId, uint32_t, const FileStep& step) override {
    step_paths_.Of(step);
    const AccessPair access = AccessOf(step);
    if ((access.path | access.path2) != kNoAccess) ++graph_.without_caller_;
  }
  void Ran(const Process& process, const ProcessRecord& record) override;
  void ExecutionEnded(const Process& process) override;
  void ProcessEnded(const Process& process) override;

  // `inode`: of the file that is written.
  void NoteWrite(const Process& process, const FileStep& step, PathId path,
                 uint16_t access, uint64_t inode);
  void FindLastWriters();
  void FindParents();

  BuildGraph graph_;
  ProcessTracker tracker_;
  StepPathFinder step_paths_{graph_.paths_};
  HeldFiles held_;
  UseCollector collector_;
  FactsTable facts_{graph_.paths_};
  PipeMatcher pipes_;
  std::vector<LastWrite> writes_;
};

}  // namespace tracefs::build
