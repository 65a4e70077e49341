// ThreadSlots: what each worker thread has at hand for recording.
//
// A thread has a slot: its open blocks, one a tracer, behind a BiasedLock, so
// that recording takes no lock and no atomic read-modify-write. When the thread
// ends, another may take over the slot with its contents.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "tracefs/base/biased_lock.h"
#include "tracefs/base/clock.h"
#include "tracefs/base/owned_counter.h"
#include "tracefs/pipeline/block_builder.h"
#include "tracefs/pipeline/tracer_stats.h"

namespace tracefs {

// What one thread has counted for one tracer, as TracerStats has it.
struct Tally {
  OwnedCounter seen;
  OwnedCounter matched;
  OwnedCounter encoded;
  OwnedCounter counted;
  OwnedCounter filter_samples;
  OwnedCounter filter_ns;
  OwnedCounter encode_samples;
  OwnedCounter encode_ns;

  static constexpr auto All() {
    using Stats = TracerStats;
    return std::array{
        std::pair{&Tally::seen, &Stats::seen},
        std::pair{&Tally::matched, &Stats::matched},
        std::pair{&Tally::encoded, &Stats::encoded},
        std::pair{&Tally::counted, &Stats::counted},
        std::pair{&Tally::filter_samples, &Stats::filter_samples},
        std::pair{&Tally::filter_ns, &Stats::filter_ns},
        std::pair{&Tally::encode_samples, &Stats::encode_samples},
        std::pair{&Tally::encode_ns, &Stats::encode_ns},
    };
  }

  void AddTo(TracerStats* stats) const {
    for (const auto& [mine, theirs] : All()) {
      stats->*theirs += (this->*mine).Get();
    }
  }
  void MoveTo(Tally* sum) {
    for (const auto& [mine, theirs] : All()) {
      (sum->*mine).Add((this->*mine).TakeAll());
    }
  }
};

struct ThreadSlot {
  // Tracers that run at a time: the bits of Event::sink_keep.
  static constexpr size_t kPositions = 64;

  explicit ThreadSlot(uint32_t slot_number) : number(slot_number) {}

  // The owner begins an operation: returns when. Until Leave it is known to
  // run.
  uint64_t Enter() {
    // A thread that stops between the two has announced that it began
    // something.
    running_since.store(kEntering, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const uint64_t begin = MonotonicNs();
    running_since.store(begin, std::memory_order_relaxed);
    return begin;
  }
  // Its record must become visible first (open_since).
  void Leave() { running_since.store(0, std::memory_order_release); }

  const uint32_t number;  // from 1 on: BlockInfo::source
  BiasedLock lock;
  // Guarded by lock; made by the owner on first use.
  std::array<std::unique_ptr<BlockBuilder>, kPositions> builders;
  // Changed under lock.
  std::array<Tally, kPositions> tallies;
  // Earliest begin of what the builders hold; 0 = they are empty. Written by
  // whoever holds the lock, read by anyone.
  std::atomic<uint64_t> open_since{0};
  // Begin of the owner's current operation; 0 = there is none, kEntering = it
  // is reading the clock. Written by the owner, read by anyone.
  static constexpr uint64_t kEntering = 1;
  std::atomic<uint64_t> running_since{0};
  // The builders have all names that the operation needs: they keep them until
  // it is recorded. Guarded by lock.
  bool names_promised = false;
  std::atomic<bool> owned{true};
};

// Threads: any.
class ThreadSlots {
 public:
  ThreadSlots();
  ThreadSlots(const ThreadSlots&) = delete;
  ThreadSlots& operator=(const ThreadSlots&) = delete;

  // The calling thread's own.
  ThreadSlot& OfThread();
  std::vector<std::shared_ptr<ThreadSlot>> All() const;

  // An operation goes on without a thread, from Park to Unpark with the same
  // begin time.
  void Park(uint64_t begin_ns);
  void Unpark(uint64_t begin_ns);

  // No operation that is to be recorded, or is in a slot, began before; 0:
  // unknown now. Never waits.
  uint64_t OldestBegin() const;

 private:
  class Handle;

  const uint64_t instance_;  // distinguishes those of one process
  mutable std::mutex slots_mu_;
  std::vector<std::shared_ptr<ThreadSlot>> slots_;  // guarded by slots_mu_
  mutable std::mutex parked_mu_;
  std::multiset<uint64_t> parked_;  // begin times; guarded by parked_mu_
};

}  // namespace tracefs
