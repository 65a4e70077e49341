// Tracer: input filter + assembly drivers + output chain, with an id.
//
// The part of a tracer that many threads share. Each worker thread has its own
// BlockBuilder for it (thread_slots.h); full blocks come here one at a time.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "tracefs/base/owned_counter.h"
#include "tracefs/base/status.h"
#include "tracefs/format/alarm.h"
#include "tracefs/format/block_info.h"
#include "tracefs/format/trace_header.h"
#include "tracefs/pipeline/block_builder.h"
#include "tracefs/pipeline/degraded_counts.h"
#include "tracefs/pipeline/loss.h"
#include "tracefs/pipeline/loss_policy.h"
#include "tracefs/pipeline/op_plans.h"
#include "tracefs/pipeline/process_block.h"
#include "tracefs/pipeline/stage_meter.h"
#include "tracefs/pipeline/stages.h"
#include "tracefs/pipeline/tracer_stats.h"
#include "tracefs/survive/area.h"

namespace tracefs {

struct TracerParts {
  uint32_t id = 0;
  TracerKind kind = TracerKind::kConfig;
  std::string name;  // of the config; may be empty
  std::unique_ptr<InputFilter> filter;
  std::vector<std::shared_ptr<const AssemblyDriver>> assembly;
  // For the meters in `output`, in its order; may be empty.
  std::vector<std::unique_ptr<StageProbe>> probes;
  // The first output filter of the chain; the last ends in the driver.
  std::unique_ptr<OutputFilter> output;
  format::Serial serial{};
  format::TraceHeader header;
  std::string output_chain;  // for the preamble: "compress; file"
  // Each event is handed on at once and before the reply (paper section 2.5).
  bool unbuffered = false;
  LossPolicy when_full = LossPolicy::kBlock;
  // A block at least this often, also if nothing happens; 0 = not.
  uint64_t heartbeat_ns = 0;
  // Where a later daemon finds how far the trace is; null: nowhere. The output
  // is then one that resumes (TraceIdentity).
  survive::TraceRecord* survives = nullptr;
};

// Of one whose trace a daemon before this one has ended (Area).
TracerStats StatsOfEnded(const TracerParts& parts);

class Tracer {
 public:
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
  const std::string& name() const { return parts_.name; }
  bool unbuffered() const { return parts_.unbuffered; }
  size_t block_bytes() const { return block_bytes_; }
  // What it records, as the tracer was made.
  const std::shared_ptr<const OpPlans>& plans() const { return plans_; }
  // The same with another filter.
  std::shared_ptr<const OpPlans> PlansWith(
      std::unique_ptr<InputFilter> filter) const;

  // A thread's own part.
  // `source`: BlockInfo::source of its blocks.
  std::unique_ptr<BlockBuilder> MakeBuilder(uint32_t source) const;
  // Whether it makes messages of events, and whether it counts them.
  bool makes_messages() const { return makes_messages_; }
  bool counts() const { return !counters_.empty(); }

  // Counts an operation that is done.
  void Count(Event& event, BlockBuilder& builder) const {
    if (parts_.survives != nullptr) {
      survive::Area::CountEvent(*parts_.survives);
    }
    for (size_t i = 0; i < counters_.size(); ++i) {
      counters_[i]->Count(event, *builder.shards()[i]);
    }
  }
  // Takes what the builder's shards have; its thread waits meanwhile.
  // AddUpCounts is for after. Both by one thread at a time.
  void TakeCounts(BlockBuilder& builder) const;
  void AddUpCounts() const;
  bool CountsDue(uint64_t now_ns) const;
  // Writes what was collected in the period that ends now; with `end` all that
  // is to be said at the end. Never fails, as Submit.
  void SubmitCounts(bool end);
  // Whether a later daemon would know too little of what was counted. Then,
  // once it is added up: that one goes on with it.
  bool CountsToKeep(uint64_t now_ns) const;
  void KeepCounts();
  // What its counters have since it started. Threads: any.
  const std::vector<std::shared_ptr<EventCounter>>& counters() const {
    return counters_;
  }

  // Appends the event to `builder`, the calling thread's; a full block is
  // submitted on the way. False if it did not fit and is lost.
  bool Record(Event& event, BlockBuilder& builder);
  // Whether Record would find all names in the block: AssemblyDriver.
  bool NamesDefined(const Event& event, const BlockBuilder& builder) const;

  // What it keeps of processes.
  ProcessNeeds process_needs() const { return process_needs_; }
  // Appends the record to its block of these; dropped if it keeps none.
  void RecordProcess(const ProcessRecord& record);
  void NoteOverrun(uint64_t count, uint64_t first_ns, uint64_t last_ns) {
    if (processes_) {
      losses_.Add(LossReason::kOverrun, count, first_ns, last_ns);
    }
  }
  void SubmitProcesses() {
    if (processes_) processes_->HandOn();
  }

  // Sends a block down the chain. Never fails: losses are counted. The block
  // may be reused afterwards.
  void Submit(Block& block);
  // Submits what `builder` holds, if anything.
  void SubmitFrom(BlockBuilder& builder);
  // A block with only LOSS messages, if there are unreported losses.
  void SubmitLosses();
  // A block without operations, if the last block was written longer ago than
  // heartbeat_ns.
  void SubmitHeartbeat();
  // Blocks with the drivers' messages about files that are already open, if
  // any.
  void SubmitOpenFiles(FileStates& states);
  // A block that says what was changed about the tracer from `from_ns` on.
  void SubmitChange(const format::ChangeRecord& change);
  // A block that says that a rule has fired; refused, it counts as one event.
  void SubmitAlarm(const format::AlarmRecord& alarm,
                   const format::AlarmValues& values);

  // A block of whole messages that somebody else made, at most
  // format::kMaxPayloadBytes less 64 KiB. False if the output refused it.
  bool SubmitMessages(ByteSpan messages);

  // Under LossPolicy::kFail: operations that it may have to record must not be
  // done now, because it could not record them.
  bool refusing() const {
    return parts_.when_full == LossPolicy::kFail &&
           (output_full_.load(std::memory_order_relaxed) ||
            write_failed_.load(std::memory_order_relaxed));
  }
  LossPolicy when_full() const { return parts_.when_full; }
  // One was not done.
  void NoteRefusal();

  Status Flush();
  const LossCounter& losses() const { return losses_; }
  // Operations that are in the trace, or on the way.
  uint64_t recorded() const {
    return recorded_.Get() - late_events_.load(std::memory_order_relaxed);
  }
  // The first error of the output since Start, for operators.
  Status output_error() const;
  // Everything that the tracer itself knows. Never waits for the output.
  void AddTo(TracerStats* stats) const;

 private:
  bool Assemble(Event& event, BlockBuilder& builder) const;
  bool RecordAlone(Event& event, BlockBuilder& builder);
  bool RecordIn(size_t room, Event& event, BlockBuilder& builder);
  uint64_t BytesUnderWay() const;
  using Say = std::function<void(const AssemblyDriver& driver,
                                 const AssemblyDriver::PutMessage& put)>;
  void SubmitWords(const Say& say);
  void ReturnLoss(const Loss& loss);
  void TakeBack(uint64_t sequence);
  void PutLosses(format::MessageWriter& writer, std::vector<Loss>* put);
  Status WriteLocked(Block& block, bool last);
  void NoteError(const Status& status);
  void NoteRefused(const BlockInfo& info, const Status& why);
  // A block was lost although it had been written: BlockLost of stages.h.
  void NoteLate(const BlockInfo& info, const Status& why);

  TracerParts parts_;
  const Watermark watermark_;
  const size_t block_bytes_;
  const std::shared_ptr<const OpPlans> plans_;
  std::vector<std::shared_ptr<EventCounter>> counters_;
  bool makes_messages_ = false;
  bool keeps_data_ = false;
  mutable std::atomic<uint64_t> builders_{0};
  ProcessNeeds process_needs_;
  LossCounter losses_;
  std::unique_ptr<ProcessBlock> processes_;  // null: it keeps none

  uint64_t WatermarkNow() const;
  // Goes on with a trace of a dead daemon, and writes what that one had.
  Status Continue(TraceIdentity identity);
  void NoteState(bool ended);
  void NoteLosses();
  // `telling`: of the counters, which are about to be told, at the end of all.
  void SaveCounts(const std::vector<bool>& telling, bool end);
  // Returns how many events of a period were told in part only.
  uint64_t LoadCounts(const survive::TraceState& state);

  // Lock order: that of processes_, mu_, error_mu_.
  std::mutex mu_;  // guards all below and the output chain
  uint64_t next_sequence_ = 0;
  uint64_t last_block_ns_ = 0;
  ClockPair clock_;
  uint64_t told_ = 0;      // TraceState::told
  uint64_t saved_ns_ = 0;  // when counts were
  bool tells_unsaved_ = true;
  std::atomic<uint64_t> save_ns_{0};  // when they are to be the next time
  // Of blocks of a dead daemon that are still to be written.
  uint64_t left_since_ns_ = UINT64_MAX;
  std::unique_ptr<Block> spare_;
  // Changed under mu_, read without.
  OwnedCounter recorded_;
  OwnedCounter blocks_;
  std::array<std::array<OwnedCounter, kOpCount>, 2> totals_;

  // Counted above, and lost after a stage that had taken them.
  std::atomic<uint64_t> late_events_{0};
  std::atomic<uint64_t> late_blocks_{0};

  LossesOnTheWay reported_;
  // For when_full.
  DegradedCounts degraded_;
  std::atomic<bool> output_full_{false};
  std::atomic<bool> write_failed_{false};  // the last block with operations

  mutable std::mutex error_mu_;
  Status output_error_;  // guarded by error_mu_
};

}  // namespace tracefs
