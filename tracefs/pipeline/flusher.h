// Flusher: passes on what threads have recorded and counted, when it is old
// enough or on request.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>

#include "tracefs/base/status.h"
#include "tracefs/base/worker.h"
#include "tracefs/pipeline/tracer_set.h"

namespace tracefs {

class Flusher {
 public:
  // `tracers` stay while `changes` is held. All outlive this.
  Flusher(std::chrono::milliseconds interval, std::mutex& changes,
          const std::shared_ptr<const TracerSet>& tracers, ThreadSlots& slots)
      : interval_(interval),
        changes_(changes),
        tracers_(tracers),
        slots_(slots) {}

  // The following are called with `changes` held.

  // Makes its thread, if there is none yet.
  Status Start();
  // Passes every open block on to the outputs. Returns the first failure, after
  // trying all.
  Status FlushAll();
  // All that a later daemon can have it will: blocks are written, counts saved.
  void KeepAll();
  // Adds up what all threads have counted for a tracer that runs.
  void CollectCounts(const TracerSet::Entry& e);

 private:
  bool FlushBlocks();
  void FlushMostBlocks();
  void FlushWhatIsDue();

  const std::chrono::milliseconds interval_;
  std::mutex& changes_;
  const std::shared_ptr<const TracerSet>& tracers_;
  ThreadSlots& slots_;
  Worker worker_;  // started under changes_
};

}  // namespace tracefs
