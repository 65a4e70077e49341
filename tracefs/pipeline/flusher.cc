#include "tracefs/pipeline/flusher.h"

#include <thread>

#include "tracefs/base/clock.h"

namespace tracefs {

Status Flusher::Start() {
  if (worker_.started()) return Status::Ok();
  return worker_.StartTurns("tracefs-flush", interval_, [this] {
    // A change of tracers visits the slots itself; no need to queue behind it.
    if (std::unique_lock change(changes_, std::try_to_lock);
        change.owns_lock()) {
      FlushWhatIsDue();
    }
  });
}

// A thread between its reply and its record gets a moment.
void Flusher::FlushMostBlocks() {
  constexpr int kTries = 50;
  for (int i = 0; i < kTries && !FlushBlocks(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Flusher::KeepAll() {
  FlushMostBlocks();
  for (const TracerSet::Entry& e : tracers_->running) {
    e.tracer->SubmitProcesses();
    e.tracer->SubmitLosses();
    if (!e.tracer->counts()) continue;
    CollectCounts(e);
    e.tracer->KeepCounts();
  }
  for (const TracerSet::Entry& e : tracers_->suspended) {
    if (e.tracer->counts()) e.tracer->KeepCounts();
  }
}

Status Flusher::FlushAll() {
  FlushMostBlocks();
  Status first;
  for (const TracerSet::Entry& e : tracers_->running) {
    e.tracer->SubmitProcesses();
    e.tracer->SubmitLosses();
    if (Status s = e.tracer->Flush(); !s.ok() && first.ok()) {
      first = s.Prefixed("tracer " + std::to_string(e.tracer->id()));
    }
  }
  return first;
}

void Flusher::CollectCounts(const TracerSet::Entry& e) {
  if (!e.tracer->counts()) return;
  for (const std::shared_ptr<ThreadSlot>& slot : slots_.All()) {
    {
      // The owner waits outside for as long as it takes to swap a pointer.
      RevokerSection section(slot->lock);
      const std::unique_ptr<BlockBuilder>& builder = slot->builders[e.position];
      if (!builder) continue;
      e.tracer->TakeCounts(*builder);
    }
    e.tracer->AddUpCounts();
  }
}

// Takes the blocks out of every slot and submits them, except those whose names
// are still needed: false if there were any.
bool Flusher::FlushBlocks() {
  bool all = true;
  const std::vector<std::shared_ptr<ThreadSlot>> slots = slots_.All();
  for (const TracerSet::Entry& e : tracers_->running) {
    std::unique_ptr<Block> block;
    for (const std::shared_ptr<ThreadSlot>& slot : slots) {
      if (slot->open_since.load(std::memory_order_relaxed) == 0) continue;
      if (!block) block = std::make_unique<Block>(e.tracer->block_bytes());
      {
        // The owner waits outside for as long as this takes: a pointer swap.
        // The output is written after.
        RevokerSection section(slot->lock);
        if (slot->names_promised) {
          all = false;
          continue;
        }
        const std::unique_ptr<BlockBuilder>& builder =
            slot->builders[e.position];
        if (!builder || builder->block().empty()) continue;
        block = builder->Take(std::move(block));
      }
      e.tracer->Submit(*block);
    }
  }
  for (const std::shared_ptr<ThreadSlot>& slot : slots) {
    if (slot->open_since.load(std::memory_order_relaxed) == 0) continue;
    RevokerSection section(slot->lock);
    uint64_t oldest = 0;
    for (const std::unique_ptr<BlockBuilder>& builder : slot->builders) {
      if (!builder || builder->block().empty()) continue;
      const uint64_t first = builder->block().first_ns;
      if (oldest == 0 || first < oldest) oldest = first;
    }
    slot->open_since.store(oldest, std::memory_order_relaxed);
  }
  return all;
}

void Flusher::FlushWhatIsDue() {
  static_cast<void>(FlushBlocks());  // what is left, the next time
  const uint64_t now = MonotonicNs();
  for (const TracerSet::Entry& e : tracers_->running) {
    const bool due = e.tracer->CountsDue(now);
    const bool to_keep = e.tracer->CountsToKeep(now);
    if (due || to_keep) CollectCounts(e);
    if (due) {
      e.tracer->SubmitCounts(/*end=*/false);
    } else if (to_keep) {
      e.tracer->KeepCounts();
    }
    e.tracer->SubmitProcesses();
    e.tracer->SubmitLosses();
    e.tracer->SubmitHeartbeat();
  }
  // A suspended one is alive, too.
  for (const TracerSet::Entry& e : tracers_->suspended) {
    if (e.tracer->CountsDue(now)) {
      e.tracer->SubmitCounts(/*end=*/false);
    } else if (e.tracer->CountsToKeep(now)) {
      e.tracer->KeepCounts();
    }
    e.tracer->SubmitHeartbeat();
  }
}

}  // namespace tracefs
