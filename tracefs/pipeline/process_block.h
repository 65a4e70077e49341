// ProcessBlock: the open block of one tracer for process records. They come
// from one place and rarely, so a mutex is enough.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>

#include "tracefs/event/process_record.h"
#include "tracefs/pipeline/block_builder.h"
#include "tracefs/pipeline/loss.h"

namespace tracefs {

// Threads: any.
class ProcessBlock {
 public:
  // Called with a full block, and by HandOn; the block may be reused after.
  using Submit = std::function<void(Block&)>;

  // `environment`: records keep theirs. `losses` gets what is too large.
  ProcessBlock(size_t block_bytes, bool environment, LossCounter& losses,
               Submit submit);

  void Take(const ProcessRecord& record);
  // Submits what it holds, if anything.
  void HandOn();
  // The same, and what comes later is dropped: the trace has ended.
  void End();

  // The earliest time of what it holds; UINT64_MAX: it is empty.
  uint64_t since_ns() const {
    return since_ns_.load(std::memory_order_acquire);
  }

 private:
  bool Append(const ProcessRecord& record, Block* block);
  void TakeLong(const ProcessRecord& record);
  void HandOnLocked();

  const bool environment_;
  LossCounter& losses_;
  const Submit submit_;
  std::mutex mu_;  // before those of the tracer; guards all below
  Block block_;
  bool ended_ = false;
  std::atomic<uint64_t> since_ns_{UINT64_MAX};  // written under mu_
};

}  // namespace tracefs
