// Tracer: input filter + assembly drivers + output chain, with an id.
//
// The part of a tracer that many threads share. Each worker thread has its own
// BlockBuilder for it (thread_slot.h); full blocks come here one at a time.
#ifndef TRACEFS_PIPELINE_TRACER_H_
#define TRACEFS_PIPELINE_TRACER_H_

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/format/trace_header.h"
#include "tracefs/pipeline/block_builder.h"
#include "tracefs/pipeline/loss.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

struct TracerParts {
  uint32_t id = 0;
  std::unique_ptr<InputFilter> filter;
  std::vector<std::unique_ptr<AssemblyDriver>> assembly;
  // The first output filter of the chain; the last ends in the driver.
  std::unique_ptr<OutputFilter> output;
  format::Serial serial{};
  format::TraceHeader header;
  std::string output_chain;  // for the preamble: "compress; file"
  // Each event is handed on at once and before the reply (paper section 2.5).
  bool unbuffered = false;
};

class Tracer {
 public:
  // What this tracer does about one operation, worked out once.
  struct OpPlan {
    bool record = false;        // a message may come of it
    bool before = false;        // a message before the operation
    bool caller = false;        // the caller is recorded
    bool decide_early = false;  // the filter reads the caller: run it in time
    bool always = false;        // the filter keeps every one
    bool data = false;
    bool names = false;
  };

  // Oldest begin time that an event of a later block may have; asked when a
  // block is closed.
  using Watermark = std::function<uint64_t()>;

  Tracer(TracerParts parts, Watermark watermark);
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // Opens the output and writes preamble and header.
  Status Start();
  // Writes FINAL with `end_reason` and closes the output. All blocks must have
  // been submitted. A failure is reported; there is nothing left to undo.
  Status Stop(std::string_view end_reason);

  uint32_t id() const { return parts_.id; }
  bool unbuffered() const { return parts_.unbuffered; }
  size_t block_bytes() const { return block_bytes_; }
  const OpPlan& plan(Op op) const { return plans_[Index(op)]; }
  const InputFilter& filter() const { return *parts_.filter; }

  // Appends the event to `builder`, the calling thread's; a full block is
  // submitted on the way.
  void Record(Event& event, BlockBuilder& builder);

  // Sends a block down the chain. Never fails: what cannot be kept is counted.
  // The block may be reused afterwards.
  void Submit(Block& block);
  // Submits what `builder` holds, if anything.
  void SubmitFrom(BlockBuilder& builder);
  // A block of nothing but LOSS messages, if there are unreported losses.
  void SubmitLosses();

  Status Flush();
  const LossCounter& losses() const { return losses_; }
  uint64_t recorded() const {
    return recorded_.load(std::memory_order_relaxed);
  }
  // The first error of the output since Start, for operators.
  Status output_error() const;

 private:
  bool Assemble(Event& event, BlockBuilder& builder) const;
  void PutLosses(format::MessageWriter& writer, std::vector<Loss>* put);
  Status WriteLocked(Block& block, bool last);
  void NoteError(const Status& status);

  TracerParts parts_;
  const Watermark watermark_;
  const size_t block_bytes_;
  std::array<OpPlan, kOpCount> plans_;
  LossCounter losses_;
  std::atomic<uint64_t> recorded_{0};

  mutable std::mutex mu_;  // guards all below and the output chain
  uint64_t next_sequence_ = 0;
  uint64_t blocks_ = 0;
  ClockPair clock_;
  std::array<std::array<uint64_t, kOpCount>, 2> totals_{};
  std::unique_ptr<Block> spare_;
  Status output_error_;
};

}  // namespace tracefs

#endif  // TRACEFS_PIPELINE_TRACER_H_
