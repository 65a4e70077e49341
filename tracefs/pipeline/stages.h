// The interfaces of a tracer's stages. A stage knows the next stage's interface
// and nothing else.
//
//   events -> InputFilter -> AssemblyDriver… -> block -> OutputStage… -> driver
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/event/event.h"
#include "tracefs/event/file_states.h"
#include "tracefs/event/process_sink.h"
#include "tracefs/event/verdict.h"
#include "tracefs/format/aggregate.h"
#include "tracefs/format/constants.h"
#include "tracefs/survive/area.h"

namespace tracefs {

class BlockBuilder;

// --- Input filter ----------------------------------------------------------

// Immutable once made; threads: any.
class InputFilter {
 public:
  virtual ~InputFilter() = default;
  virtual FilterNeeds Needs(Op op) const = 0;
  // Before the operation has run: kUndecided if the answer depends on fields
  // that are not known yet.
  virtual Verdict DecideEarly(Event& event) const = 0;
  // For all operations of kind event.op through a handle that is about to be
  // opened: only the facts of the file are known.
  virtual Verdict DecideForFile(Event& event) const {
    return Needs(event.op).constant;
  }
  // When everything is known.
  virtual bool Keep(Event& event) const = 0;
  // The test it makes for this operation, for people; one line or several.
  virtual std::string Describe(Op /*op*/) const { return {}; }
};

// --- Assembly driver -------------------------------------------------------

struct AssemblyNeeds {
  bool after = false;      // a message when the operation is done
  bool before = false;     // a message before it runs
  bool caller = false;     // kCaller fields
  bool syscall = false;    // kSyscall
  bool details = false;    // CallerDetails; then `caller`, too
  bool ancestors = false;  // used by filters, not by drivers
  bool data = false;       // bytes of reads and writes
  bool order = false;      // times that show which came first (kOrder)
  bool counts = false;     // EventCounter instead of messages
  bool names = false;      // bits of name predicates (Event::name_bits)
  bool keep = false;       // what it destroys (kKeep)
  bool extents = false;    // where it lies (kExtents)

  // What a driver needs that asks a filter about what it assembles.
  void AddThoseOf(const FilterNeeds& filter) {
    caller |= filter.caller;
    syscall |= filter.syscall;
    details |= filter.details;
    ancestors |= filter.ancestors;
    names |= filter.names;
  }
};

// Counts kept events instead of recording each: the other half of an assembly
// driver that aggregates. Each thread counts in a shard of its own, so that
// counting takes no lock; a collector takes the shards' counts now and then.
class EventCounter {
 public:
  class Shard {
   public:
    virtual ~Shard() = default;
  };
  using WriteRecord = std::function<void(const format::AggregateRecord&)>;

  virtual ~EventCounter() = default;

  // What it counts by, for the header of the trace: "op uid".
  virtual std::string Keys() const = 0;

  // Threads: any.
  virtual std::unique_ptr<Shard> MakeShard() const = 0;
  // The thread of the shard, when the operation is done.
  virtual void Count(Event& event, Shard& shard) const = 0;
  // Whether Count would find every name it needs in the shard: see
  // AssemblyDriver::NamesDefined.
  virtual bool KnowsNames(const Event& event, const Shard& shard) const = 0;

  // The following are called by one thread at a time.

  // Takes a shard's counts, quickly: its thread waits meanwhile.
  virtual void Take(Shard& shard) = 0;
  // Adds up what was taken. After each Take, before the next.
  virtual void AddUp() = 0;
  // Whether a period is over at `now_ns`.
  virtual bool Due(uint64_t now_ns) const = 0;
  // Returns the period that ends now and begins the next; with `end`,
  // everything to be written at the end of a trace.
  virtual void Report(uint64_t now_ns, bool end, const WriteRecord& write) = 0;

  // What another process goes on with, as bytes: all that was added up, but
  // what is in shards.
  virtual void Save(std::string* out) const = 0;
  // Goes on with that. `told`: it was saved when the period, or with `end` all
  // that there was, was about to be returned, and has been since: that is not
  // told again. Returns how many events that were; nothing, and nothing has
  // changed, if these are no such bytes. Before all else.
  struct Told {
    bool period = false;
    bool end = false;
  };
  virtual std::optional<uint64_t> Load(std::string_view saved, Told told) = 0;
  // Calls of Count that were added up since the trace began, whatever became of
  // them.
  virtual uint64_t counted() const = 0;

  // The counts since the trace began, for people and metrics: the records are
  // valid during the calls. Threads: any.
  virtual void ForEachTotal(const WriteRecord& use) const = 0;
};

// Turns kept events into messages of the calling thread's block. Immutable or
// internally sharded; threads: any, each with its own builder.
class AssemblyDriver {
 public:
  virtual ~AssemblyDriver() = default;
  virtual AssemblyNeeds Needs(Op op) const = 0;
  // Appends the event's message. False if it did not fit even into an empty
  // block (the tracer counts a kTooLarge loss).
  virtual bool Assemble(Event& event, BlockBuilder& block) const = 0;
  // True if Assemble would find every name it writes defined in the block. If
  // not, it must run before the reply: after it the caller goes on, and the
  // file may soon have another name, or none.
  virtual bool NamesDefined(const Event& /*event*/,
                            const BlockBuilder& /*block*/) const {
    return true;
  }
  virtual ProcessNeeds process_needs() const { return {}; }
  // The messages at the end of the trace: calls `put` for each, with a function
  // that writes it, which may be called again for another block. Once, when no
  // operation is recorded any more.
  using WriteMessage = std::function<bool(format::MessageWriter& out)>;
  using PutMessage = std::function<void(const WriteMessage& write)>;
  virtual void AtEnd(const PutMessage& /*put*/) const {}
  // Likewise when it begins, or is resumed; operations are recorded meanwhile.
  virtual void AtBegin(FileStates& /*states*/,
                       const PutMessage& /*put*/) const {}
  // For a driver that counts: events go there instead of to Assemble. Its state
  // is separate from the driver, which stays immutable.
  virtual std::shared_ptr<EventCounter> counter() const { return nullptr; }
};

// --- Output ----------------------------------------------------------------

// What travels with the bytes of a block.
struct BlockInfo {
  uint64_t sequence = 0;
  uint64_t events = 0;  // what is lost if this block is
  // Likewise: operations that its AGGREGATE messages stand for, its alarm, and
  // its process records.
  uint64_t counted = 0;
  uint64_t first_ns = 0;
  uint64_t last_ns = 0;
  bool last = false;  // holds FINAL: may use space kept in reserve
  // Which thread's operations it holds: 1, 2, …; 0: none's, or the tracer's
  // own.
  uint32_t source = 0;
  // With LossPolicy::kFail: bytes that operations already begun may need once
  // the output is reported full. Room for them is kept from the start.
  uint64_t under_way = 0;
};

// Tells the tracer that a block was lost after all, though the Write that took
// it succeeded. Threads: any, until Release returns.
using BlockLost = std::function<void(const BlockInfo& info, const Status& why)>;

// Tells the tracer that the output is about to run out of room, or has room
// again: with LossPolicy::kFail operations are refused meanwhile. Threads: any,
// until Release returns; it takes no lock.
using OutputFull = std::function<void(bool full)>;

// What stages learn when a trace begins.
struct TraceIdentity {
  uint32_t tracer_id = 0;
  format::Serial serial{};
  std::string preamble;  // encoded; the driver writes it before all else
  // For stages that hand blocks on later; may be empty.
  BlockLost lost = nullptr;
  OutputFull full = nullptr;
  // If not null, each stage keeps here what a later process goes on with, and
  // is told (Noted) when that would.
  survive::OutputState* survives = nullptr;
  // Whether this one goes on with what is there. What the output has beyond
  // that goes: it is written once more.
  bool resumes = false;
  uint64_t next_block = 0;  // then
  // A stage before has changed the times in the blocks: those after it write
  // none that would tell what they were.
  bool hides_times = false;
};

// How full the queue of a stage is.
struct QueueGauge {
  uint64_t blocks = 0;
  uint64_t bytes = 0;
  uint64_t limit_bytes = 0;  // 0: not bounded by bytes
  // In a ring: operations overwritten by newer ones.
  uint64_t overwritten = 0;
  // Operations that wait here, and may still be lost; of a ring: none.
  uint64_t events = 0;
};

// An output filter: transforms blocks and passes them to the next one. It has
// the paper's five operations (section 2.1: initialize, release, write, flush,
// get preferred block size). Owned by one tracer, which serialises the calls;
// they come from any thread.
class OutputFilter {
 public:
  virtual ~OutputFilter() = default;
  // Called once, before anything else.
  virtual Status Initialize(const TraceIdentity& identity) = 0;
  // Takes one whole block, or fails and has taken nothing of it. A failure
  // does not end the filter: the next block may fit again. A filter that drops
  // by its own policy fails with DroppedStatus (loss.h).
  virtual Status Write(ByteSpan block, const BlockInfo& info) = 0;
  // TraceIdentity::survives was noted as it is: what was written up to now
  // will not be written once more. Passed on to the next stage.
  virtual void Noted() {}
  // Passes buffered data on, down to the driver. Fails if any of it could not
  // be written.
  virtual Status Flush() = 0;
  // Flushes and releases what Initialize acquired, also in the following
  // stages. Nothing is called afterwards.
  virtual Status Release() = 0;
  // Bytes of a block that suit this and the following stages; 0 = any.
  virtual size_t PreferredBlockSize() const = 0;
  // For a stage that queues blocks. Threads: any.
  virtual std::optional<QueueGauge> Queue() const { return std::nullopt; }
};

// Moves finished frames out of the process (file, socket). The same five
// operations and rules as a filter's; nothing follows it.
class OutputDriver {
 public:
  virtual ~OutputDriver() = default;
  virtual Status Initialize(const TraceIdentity& identity) = 0;
  // One frame, given as two pieces. Takes all of it or, on failure, leaves the
  // output as it was, so that it ends with a whole frame.
  virtual Status Write(ByteSpan frame_header, ByteSpan payload,
                       const BlockInfo& info) = 0;
  virtual void Noted() {}
  virtual Status Flush() = 0;
  virtual Status Release() = 0;
  virtual size_t PreferredBlockSize() const = 0;
  virtual std::optional<QueueGauge> Queue() const { return std::nullopt; }
};

}  // namespace tracefs
