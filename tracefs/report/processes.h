// Processes: who did it, who began whom, from when to when, and how it ended;
// from operations and, where the trace has them, from process records.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tracefs/event/event.h"
#include "tracefs/event/process_record.h"
#include "tracefs/report/name_tree.h"

namespace tracefs::report {

// Used by one thread. Memory: a bounded number of processes, those that
// mattered least folded into their parents.
class Processes {
 public:
  struct Facts {
    uint32_t pid = 0;
    uint32_t ppid = 0;
    std::string name;       // comm, the last one known
    std::string command;    // arguments with blanks between, where recorded
    uint64_t begin_ns = 0;  // since the epoch; 0: no time known
    uint64_t end_ns = 0;    // of the last that was seen of it
    bool begun = false;     // its beginning was seen, and its end
    bool ended = false;
    std::optional<uint32_t> exit_code;
    std::optional<uint32_t> signal;
  };

  Processes();

  // The process behind an operation; the node for those whose caller is not
  // known, or was only inferred.
  NodeId Of(const Event& event, std::string_view comm, uint64_t real_ns,
            size_t trace);
  void Take(const ProcessRecord& record, size_t trace);
  void Add(NodeId node, const tally::Sums& what, uint64_t ns,
           const Bins& coarse) {
    tree_.Add(node, what, ns, coarse);
  }
  void Add(NodeId node, const tally::Sums& what) { tree_.Add(node, what); }
  // To be called between operations.
  void KeepBounded();

  NameTree& tree() { return tree_; }
  const NameTree& tree() const { return tree_; }
  const Facts& facts(NodeId node) const { return facts_[node]; }
  bool any_records() const { return any_records_; }
  NodeId unknown() const { return unknown_; }
  NodeId inferred() const { return inferred_; }

 private:
  // A live process by its pid and trace; pids are used again.
  struct Known {
    uint64_t start_ticks = 0;
    NodeId node = 0;
  };
  static constexpr size_t kMaxArguments = 512;  // bytes of a command that stay

  Known* Find(uint32_t pid, uint64_t start, size_t trace);
  NodeId Begin(uint32_t pid, uint64_t start, uint32_t ppid, size_t trace);
  NodeId Get(uint32_t pid, uint64_t start, uint32_t ppid, size_t trace);
  static uint64_t PidKey(uint32_t pid, size_t trace) {
    return uint64_t{trace} << 32 | pid;
  }
  void Seen(NodeId node, uint64_t real_ns);
  NodeId AddNode(NodeId parent);

  NameTree tree_;
  std::vector<Facts> facts_;  // by node
  std::unordered_map<uint64_t, Known> by_pid_;
  uint64_t processes_ = 0;  // that ever were: their names in the tree
  NodeId unknown_ = 0;
  NodeId inferred_ = 0;
  bool any_records_ = false;
};

}  // namespace tracefs::report
