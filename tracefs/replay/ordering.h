// OrderTracker: which operations have to wait for which, when a plan is made.
//
// ROOT's rules (Weiss et al., SOSP 2013) on what a trace knows for certain:
// inodes, names in directories, open files. A resource is used in runs: uses
// that may go on at once form a run, and a run begins when all before it are
// done. So a counter of finished uses is all that is needed: each use of a run
// waits until it has the number of uses before that run. Resources share a
// fixed number of counters by a hash. Two that share one are kept in order
// although they need not; that is all, because an action only waits for earlier
// ones in the plan.
#pragma once

#include <cstdint>
#include <vector>

#include "tracefs/replay/action.h"

namespace tracefs::replay {

enum class Resource : uint8_t {
  kFile,       // contents and attributes of an inode, from its making on
  kName,       // a name in a directory
  kDirectory,  // a directory: shared while it is used, else made or removed
  kListing,    // what is in it: changed, or listed
  kHandle,     // an open file, from its open to its release
  kLocks,      // of an inode
  kAll,        // one for everything
};

// Uses of the same kind, but kAlone, may go on at once.
enum class UseKind : uint8_t { kShared, kChange, kList, kAlone };

// Used by one thread.
class OrderTracker {
 public:
  OrderTracker() : runs_(kOrderCounters) {}

  // For one action after the other: Begin, Use for each resource, End.
  void Begin(uint32_t lane) {
    lane_ = lane;
    count_ = 0;
  }
  void Use(Resource resource, uint64_t key, UseKind kind);
  // Puts what the action has to wait for, and adds to, into it.
  void End(Action* action);

 private:
  static constexpr uint32_t kNobody = UINT32_MAX;
  static constexpr uint32_t kSeveral = UINT32_MAX - 1;
  struct Run {
    uint32_t uses = 0;               // of all runs
    uint32_t begin = 0;              // uses before this run
    uint32_t before_lane = kNobody;  // who made the uses before it
    uint32_t lane = kNobody;         // and those of it
    UseKind kind = UseKind::kAlone;
  };
  struct Wanted {
    uint32_t counter;
    UseKind kind;
  };

  std::vector<Run> runs_;
  uint32_t lane_ = 0;
  Wanted wanted_[Action::kMaxOrders];
  uint32_t count_ = 0;
};

}  // namespace tracefs::replay
