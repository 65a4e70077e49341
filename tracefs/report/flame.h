// Flame: command > path > operation, summed up by a thread of its own, as that
// is half of what a report has to do.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tracefs/event/op.h"
#include "tracefs/report/name_tree.h"
#include "tracefs/report/recent.h"

namespace tracefs::report {

// Used by one thread besides its own one, which runs from the first operations
// on until Tree or until this is gone. What that one throws for want of memory
// comes from Add or Tree.
class Flame {
 public:
  Flame();
  ~Flame();
  Flame(const Flame&) = delete;
  Flame& operator=(const Flame&) = delete;

  // An operation of that command on that file, by nodes of their trees, at that
  // time (0: not known), with bins of 1 << `shift` ns, never less than before.
  void Add(const NameTree& commands, NodeId command, const NameTree& files,
           NodeId file, Op op, const tally::Sums& what, uint64_t real_ns,
           int shift);
  // Nodes of the trees have other numbers from now on.
  void Renumber();
  // What came of all; nothing more is added.
  NameTree& Tree();

 private:
  struct Step {
    NodeId command = 0;
    NodeId file = 0;
    uint32_t command_line = 0;  // in lines
    uint32_t file_line = 0;
    Op op{};
    int shift = 0;
    uint64_t real_ns = 0;
    tally::Sums what;
  };
  // Operations on their way, with the names they need: trees grow meanwhile.
  struct Batch {
    std::vector<Step> steps;
    std::string bytes;            // names, one after the other
    std::vector<uint32_t> ends;   // of names, in `bytes`
    std::vector<uint32_t> lines;  // ends of paths, in `ends`
    bool renumbered = false;      // since the one before
  };
  // Where the line of a node is in the batch of that number.
  struct Written {
    uint64_t batch = 0;
    uint32_t line = 0;
  };
  static constexpr size_t kSteps = 8192;
  static constexpr size_t kBytes = size_t{1} << 20;
  static constexpr size_t kAhead = 4;  // batches

  uint32_t LineOf(const NameTree& tree, NodeId node,
                  std::vector<Written>* written);
  void HandOn();
  void End();
  void Work();
  void Take(const Batch& batch);
  NodeId NodeOf(const Batch& batch, const Step& step);

  // Of who adds.
  std::unique_ptr<Batch> batch_;
  uint64_t batches_ = 1;
  std::vector<Written> command_lines_;  // by node
  std::vector<Written> file_lines_;
  std::vector<NodeId> line_;  // scratch

  // Of the thread.
  NameTree tree_;
  Recent recent_{1 << 17};
  std::string name_;  // scratch

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Batch>> waiting_;  // guarded by mutex_, and these
  bool ended_ = false;
  std::exception_ptr failed_;
  std::thread thread_;
};

}  // namespace tracefs::report
