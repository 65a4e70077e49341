// Player: does the actions of a plan, each lane a thread of its own, in the
// order and at the times that are asked for.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/replay/outcome.h"
#include "tracefs/replay/plan_file.h"
#include "tracefs/replay/target_tree.h"
#include "tracefs/replay/verify.h"

namespace tracefs::replay {

enum class OrderMode : uint8_t {
  kRoot,    // what works on the same thing, as it was (ordering.h)
  kThread,  // each thread for itself
  kGlobal,  // one after the other
  kNone,    // as it comes
};
enum class TimingMode : uint8_t {
  kAsap,
  kOriginal,  // at its time
  kScale,     // the same, all times multiplied
  kThink,     // as long after the lane's last one as it was then
};
enum class OnMismatch : uint8_t { kCount, kWarn, kAbort };

struct PlayOptions {
  OrderMode order = OrderMode::kRoot;
  TimingMode timing = TimingMode::kAsap;
  double scale = 1;  // of kScale and kThink
  OnMismatch on_mismatch = OnMismatch::kCount;
  bool skip_repeated = false;            // looks at what has not changed
  uint64_t max_lag_ns = UINT64_MAX;      // ends the replay if anything is later
  uint64_t until_sequence = UINT64_MAX;  // the last one to be done
  uint64_t until_ns = UINT64_MAX;        // since the first operation
  VerifyOptions verify;
  // Told at once with kWarn; any thread, one at a time.
  std::function<void(const Mismatch&)> warn;
  // Asked before each action, in their order, where set: false ends the replay.
  // Needs kGlobal.
  std::function<bool(const Action&)> before;
};

// Waits until a number has reached a value, with few system calls.
class Counter {
 public:
  void Add();
  // False if `stop` was set first. `*waited` is set if it was not there yet.
  bool Await(uint32_t value, const std::atomic<bool>& stop, bool* waited);

 private:
  std::atomic<uint32_t> count_{0};
};

class Player {
 public:
  // `plan` and `tree` outlive it.
  Player(int plan, const PlanHeader& header, TargetTree* tree,
         PlayOptions options);
  ~Player();

  // Once. What it came to, also if it was ended before its time.
  Status Run(Outcome* outcome);
  // Any thread.
  void Stop() { stop_ = true; }

 private:
  struct Batch;
  struct Lane;

  Status StartLanes();
  Status Dispatch();
  std::vector<std::byte> TakeRoom();
  void RunLane(Lane& lane);
  bool DoOne(Lane& lane, const Action& action, uint64_t index);
  bool AwaitTurn(Lane& lane, const Action& action, uint64_t index);
  void AwaitTime(Lane& lane, const Action& action);
  void Finished(const Action& action);
  void Judge(Lane& lane, const Action& action, const Done& done);
  void Fail(Status status);

  const int plan_;
  const PlanHeader header_;
  TargetTree* const tree_;
  const PlayOptions options_;
  const bool counts_;  // the counters of kRoot are needed
  std::vector<Counter> counters_;
  Counter all_;  // of kGlobal
  std::vector<std::unique_ptr<Lane>> lanes_;
  std::atomic<bool> stop_{false};
  uint64_t begin_ns_ = 0;
  std::atomic<uint32_t> chunks_{0};  // that are still in use
  std::mutex mutex_;
  std::condition_variable chunk_done_;
  Status status_;                              // guarded by mutex_
  std::vector<std::vector<std::byte>> rooms_;  // guarded by mutex_
};

}  // namespace tracefs::replay
