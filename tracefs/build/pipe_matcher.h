// PipeMatcher: which execution could read what another one wrote into a pipe.
//
// Known are the pipes that each execution held as it began. By the rule of
// CAS's parser a pipe leads from a child to its parent where the one holds the
// end for writing and the other that for reading, and from the standard output
// of one process to the standard input of another. In place of these an end
// counts that a command line names as a file (/dev/fd/63), as shells do for
// `cmd <(other)`. A shell makes its pipes
// after it began, so that its own ends are not known: a pipe that nobody is
// seen to read is taken to be read by the parent, unless that holds it for
// writing, too: then both were given it.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "tracefs/build/process_tracker.h"

namespace tracefs::build {

struct PipeEdge {
  ExecutionName writer;
  ExecutionName reader;
  friend bool operator==(const PipeEdge&, const PipeEdge&) = default;
};

// Used by one thread. Memory: some bytes for each pipe of each execution.
class PipeMatcher {
 public:
  // Must hear of every execution.
  void ExecutionBegan(const Process& process);
  void Add(const Process& process, std::span<const PipeEnd> pipes);
  // All edges, in order of writers and readers, each once.
  std::vector<PipeEdge> Match();
  // Pipes that Match() left out: so many hold both ends that nothing follows.
  uint64_t crowded() const { return crowded_; }

 private:
  static constexpr size_t kMostPairs = size_t{1} << 20;  // of one pipe
  static constexpr size_t kMostEdges = size_t{1} << 22;

  struct End {
    ExecutionName execution;
    ExecutionName parent;
    uint32_t fd;
    bool forked_too;  // the fork before this first exec held it as well
    ExecutionId fork;
    bool both;   // it holds the other end as well
    bool named;  // as a file, by the command line
  };
  struct Pipe {
    std::vector<End> writers;
    std::vector<End> readers;
  };

  // The execution of each process as it was forked.
  std::unordered_map<ProcessId, ExecutionId> forks_;
  std::unordered_map<uint64_t, Pipe> pipes_;  // by inode
  uint64_t crowded_ = 0;
};

}  // namespace tracefs::build
