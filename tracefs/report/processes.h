// Processes: who did it, who began whom, from when to when, and how it ended;
// as build::ProcessTracker follows them, with nodes in a tree.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tracefs/build/process_tracker.h"
#include "tracefs/event/event.h"
#include "tracefs/event/process_record.h"
#include "tracefs/format/record.h"
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
  // known, or was only inferred. `machine`: small numbers, each with pids of
  // its own.
  NodeId Of(const format::Record& record, uint64_t real_ns, size_t machine);
  void Take(const ProcessRecord& record, size_t machine);
  void Add(NodeId node, const tally::Sums& what, uint64_t ns,
           const Bins& coarse) {
    tree_.Add(node, what, ns, coarse);
  }
  void Add(NodeId node, const tally::Sums& what) { tree_.Add(node, what); }
  // To be called between operations. If nodes have other numbers from now on,
  // these, as NameTree::Fold has them.
  std::vector<NodeId> KeepBounded();

  NameTree& tree() { return tree_; }
  const NameTree& tree() const { return tree_; }
  const Facts& facts(NodeId node) const { return facts_[node]; }
  bool any_records() const { return any_records_; }
  NodeId unknown() const { return unknown_; }
  NodeId inferred() const { return inferred_; }

 private:
  // Those of one machine; pids of machines differ.
  class OfMachine final : public build::TrackerListener {
   public:
    explicit OfMachine(Processes* all) : all_(*all) {}

    NodeId Take(const build::FileStep& step, uint64_t real_ns);
    void Take(const ProcessRecord& record);
    // Nodes have moved, and some were folded into others.
    void Renumber(const std::vector<NodeId>& now,
                  const std::vector<bool>& folded);

   private:
    void ProcessBegan(const build::Process& process) override;
    void ForkTold(const build::Process& process) override;
    void Did(const build::Process& process,
             const build::FileStep& step) override;
    void DidWithout(build::ProcessId id, uint32_t number,
                    const build::FileStep& step) override;
    void Ran(const build::Process& process,
             const ProcessRecord& record) override;
    void ProcessEnded(const build::Process& process) override;
    // 0: none, or folded.
    NodeId NodeOf(build::ProcessId id) const;
    NodeId NodeOf(const build::Process& process) const;

    Processes& all_;
    build::ProcessTracker tracker_{*this};
    std::unordered_map<build::ProcessId, NodeId> nodes_;
    uint32_t numbering_ = 1;  // of nodes; marks of processes have it on top
    uint64_t real_ns_ = 0;    // of what is being taken
    NodeId found_ = 0;        // of the operation
  };
  static constexpr size_t kMaxArguments = 512;  // bytes of a command that stay

  OfMachine& Of(size_t machine);
  void Seen(NodeId node, uint64_t real_ns);
  NodeId AddNode(NodeId parent);

  NameTree tree_;
  std::vector<Facts> facts_;  // by node
  std::vector<std::unique_ptr<OfMachine>> machines_;
  uint64_t processes_ = 0;  // that ever were: their names in the tree
  NodeId unknown_ = 0;
  NodeId inferred_ = 0;
  bool any_records_ = false;
};

}  // namespace tracefs::report
