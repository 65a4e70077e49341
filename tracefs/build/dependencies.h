// What a file was made from, and what was made from it.
//
// Data flow: whoever wrote the file, everything they read, whoever wrote that,
// and so on; through pipes, too. Whoever is an execution: what a process writes
// is made from what it read until then, with the programs that it ran before,
// and not from what it reads after another exec. What passes outside the mount,
// as a compiler's temporary file in /tmp, breaks this chain. Then the process
// tree helps: what the writer's relatives read that worked on the same job.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tracefs/build/build_config.h"
#include "tracefs/build/build_graph.h"

namespace tracefs::build {

// A change of options for some targets.
struct ModuleRule {
  std::string targets;  // a pattern
  std::vector<std::string> exclude_files;
  std::vector<std::string> exclude_commands;
  std::optional<bool> pipes;
};

struct DependencyOptions {
  enum class Closure : uint8_t {
    kFlow,  // nothing but data flow
    kBoth,  // a writer that read nothing counts as the nearest ancestor whose
            // processes read something
    kTree,  // a writer counts as all processes of its job
  };
  Closure closure = Closure::kBoth;
  bool direct = false;  // do not go on through other modules
  bool pipes = true;
  // A writer counts as the shell that ran it, with all that the shell ran.
  bool wrap = false;
  bool negate = false;  // patterns exclude what they do not match
  std::vector<std::string> exclude_files;     // are found, but lead no further
  std::vector<std::string> exclude_commands;  // nothing they read counts
  // With `direct`: files that are not gone through.
  std::vector<std::string> modules;
  std::vector<std::string> wrappers = {"/bin/bash",     "/bin/sh",
                                       "/usr/bin/bash", "/usr/bin/sh",
                                       "/bin/dash",     "/usr/bin/dash"};
  // What starts jobs: programs whose children each are one.
  std::vector<std::string> job_makers = {"*make", "*/ninja", "ninja", "*/samu",
                                         "*/ctest"};
  std::vector<ModuleRule> rules;
  BuildConfig programs;  // which are drivers of compilers
};

// Shared by all writers that count as one group of many: a list of a million
// files for each of a thousand writers would be too much.
using PathList = std::shared_ptr<const std::vector<PathId>>;

struct Dependencies {
  // Who wrote a file, and what counts as read by him.
  struct Step {
    PathId written = PathTable::kNone;
    ExecutionId writer = kNobody;
    PathList reads;
  };
  // A writer whose own reads say nothing: he counts as all processes below
  // `instead`, or is kNobody where that read nothing, either.
  struct NoInput {
    PathId written = PathTable::kNone;
    ExecutionId writer = kNobody;
    ExecutionId instead = kNobody;
  };

  bool written = false;       // whether anybody was seen to write the target
  std::vector<PathId> files;  // without the target, as they were found
  std::vector<ExecutionId> executions;
  std::vector<Step> steps;
  std::vector<NoInput> no_inputs;
};

// Used by one thread. `graph` outlives it.
class DependencyFinder {
 public:
  DependencyFinder(const BuildGraph& graph, DependencyOptions options);

  Dependencies Of(PathId target);
  // Every file that has `source` among its dependencies, in the order of
  // discovery. `executions`: who has to run again.
  Dependencies MadeFrom(PathId source);

  // The process below a job maker, or the topmost, that `execution` is below
  // of, as it was then: one line of a recipe.
  ExecutionId JobOf(ExecutionId execution) const;
  // Whether a process is a job, and its parent none that it belongs to.
  bool IsJob(ProcessId process) const;
  // Whose reads count when somebody writes: its own, and those of the programs
  // that the process ran before; or those of all processes from there down,
  // without what these wrote themselves and what `root`'s process ran
  // afterwards. Jobs of a job maker that is among them, as of a recursive make,
  // are not of its job, unless shells stand for all that they ran.
  struct Group {
    ExecutionId root = kNobody;
    bool tree = false;
  };
  Group GroupOf(ExecutionId execution);
  std::vector<ExecutionId> MembersOf(const Group& group) const;
  // In order of paths.
  PathList ReadsOf(const Group& group);

 private:
  // Of groups that are trees, by their roots: who writes.
  using Members = std::unordered_map<ExecutionId, std::vector<ExecutionId>>;
  struct Chosen {  // for one target
    std::string target;
    bool direct;
    bool pipes;
    std::vector<const ModuleRule*> rules;
  };
  Chosen ChooseFor(PathId target) const;
  bool IsExcludedFile(const Chosen& chosen, PathId path) const;
  bool IsExcluded(const Chosen& chosen, ExecutionId execution) const;
  bool ParentRuns(const std::vector<std::string>& patterns,
                  ProcessId process) const;
  ProcessId ParentInRun(ProcessId process) const;
  Group FindGroup(ExecutionId execution);
  // Whether anything was read, and not just in order to be run.
  bool HasInput(const Group& group) const;
  bool TreeHasInput(ExecutionId root);
  bool IsPiped(ExecutionId execution) const;
  // Who wrote into the pipes that it, or a program before it, can read.
  std::vector<ExecutionId> PipedTo(ExecutionId execution) const;
  template <typename Visit>
  void ForEachUse(const Group& group, Visit visit) const;
  std::vector<PathId> WrittenBy(const Group& group) const;
  // What it read in place of words of its command line; in order.
  std::vector<PathId> ResponseFilesOf(ExecutionId id) const;
  void AddResponseFiles(ExecutionId root, std::vector<PathId>* reads) const;
  void FillGroups();
  std::vector<PathId> FindReads(const Group& group) const;
  // Calls `take` with all whose group got something of a file by this use.
  template <typename Take>
  void ForEachTaker(PathId path, const BuildGraph::PathUse& use,
                    Members* members_left, Take take);

  const BuildGraph& graph_;
  const DependencyOptions options_;
  // All by execution.
  std::vector<char> excluded_commands_;
  // Who can write into its pipes, which it was the first to read; and who was
  // the first that can read from its own.
  std::vector<std::vector<ExecutionId>> pipe_writers_;
  std::vector<std::vector<ExecutionId>> pipe_readers_;
  std::vector<Group> groups_;      // kNobody: not asked yet
  std::vector<char> tree_inputs_;  // 0 not asked yet, 1 no, 2 yes
  std::unordered_map<ExecutionId, PathList> tree_reads_;  // by root, once asked
  bool groups_filled_ = false;
  std::vector<char> makes_;  // writes into files, or to who reads its pipes
  Members members_;
};

}  // namespace tracefs::build
