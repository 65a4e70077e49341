// EventSink: all that the file system knows about tracing.
//
// For each request a handler asks what tracers want to know about it. If
// nothing, it makes no event, else a Recording:
//
//   if (const uint32_t interest = sink.InterestIn(op);
//       (interest & EventSink::kRecord) != 0) {
//     Recording recording(sink, op, interest);  // it begins
//     recording.event.Set(…);                   // its arguments
//     if (recording.Wants(EventSink::kBefore)) recording.Before();
//     …                                         // it runs
//     recording.event.SetResult(…);
//     recording.End([&] { return fuse_reply_…; });
//   }
//
// Recording happens after the reply, where it can wait. Nothing here fails or
// changes the result of the operation. An operation is not recorded if this is
// destroyed without End.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "tracefs/event/event.h"

namespace tracefs {

struct ThreadSlot;
class ThreadSlots;
struct TracerSet;

// Threads: any.
class EventSink {
 public:
  enum Interest : uint32_t {
    kRecord = 1,       // some tracer may keep the event: make it
    kBefore = 2,       // some tracer wants a message before the operation
    kBeforeReply = 4,  // some tracer must look while the caller waits
    kCaller = 8,       // some tracer records who it was: resolve it in time
    kData = 16,        // some tracer wants the data of reads and writes
    kNames = 32,       // a filter of this op asks for Event::name_bits
    kGate = 64,        // some tracer may forbid the operation: ask Refuses
    kSyscall = 128,  // some tracer records the system call: resolve it in time
    kDetails = 256,  // likewise CallerDetails
    // Begin and end must show which of two conflicting operations took effect
    // first.
    kOrder = 512,
    kKeep = 1024,     // some tracer wants kept what it destroys
    kExtents = 2048,  // some tracer records where on the device it lies
    // Some tracer records where what is written lies, once that is synced or
    // closed: what is written is to be noted, whether it is recorded or not.
    kNotesWrites = 4096,
  };

  EventSink(const EventSink&) = delete;
  EventSink& operator=(const EventSink&) = delete;

  // What tracers want of this operation: Interest bits. Without kRecord there
  // is to be no Recording. One relaxed load.
  uint32_t InterestIn(Op op) const {
    return interest_[Index(op)].load(std::memory_order_relaxed);
  }

  // True if an operation of this kind must not be done now, because a tracer
  // that may have to record it cannot, and is configured to fail then. It is
  // counted as refused.
  bool Refuses(Op op);

  // From now on an operation is recorded before it is answered, each time: what
  // was answered is then in a block. Before the first operation.
  void RecordFirst() { records_first_ = true; }

  // Whether some tracer may record operations of kind event.op on the file that
  // the event describes, for any caller. For open: what cannot be recorded, the
  // kernel may do by itself.
  bool MayRecord(Event& event) const;

 protected:
  EventSink();
  ~EventSink();

  // Sets the tracers from now on. The previous ones are no longer in use once
  // the lock of every slot has been revoked once.
  void Show(const TracerSet& tracers);
  ThreadSlots& slots() const { return *slots_; }

 private:
  friend class Parked;
  friend class Recording;

  bool records_first_ = false;
  std::array<std::atomic<uint32_t>, kOpCount> interest_{};
  // Read by a slot's owner inside the slot's lock.
  std::atomic<const TracerSet*> tracers_{nullptr};
  const std::unique_ptr<ThreadSlots> slots_;
};

// While it lives, the operation is known to continue without the thread on
// which it began. Threads: any.
class Parked {
 public:
  Parked(EventSink& sink, uint64_t begin_ns);
  ~Parked();
  Parked(const Parked&) = delete;
  Parked& operator=(const Parked&) = delete;

 private:
  EventSink& sink_;
  const uint64_t begin_ns_;
};

// Threads: the one that made it, and destroys it; after Park any, one at a
// time.
class Recording {
 public:
  // `interest`: InterestIn(op), with kRecord. Sets op and begin time of the
  // event.
  Recording(EventSink& sink, Op op, uint32_t interest);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  bool Wants(EventSink::Interest what) const { return (interest_ & what) != 0; }

  // All arguments are there, and it runs now: for kBefore.
  void Before();

  // It is done: records it and calls `reply`, which releases the caller.
  // Returns what `reply` returns.
  template <typename Reply>
  int End(Reply&& reply) {
    const bool recorded = BeforeReply();
    const int result = reply();
    if (!recorded) AfterReply();
    return result;
  }

  // It continues without its thread (a lock held by another): some thread ends
  // it later. Once.
  void Park();

  Event event;

 private:
  ThreadSlot& Slot() const;
  // Does what must be done while the caller still waits. True if that was
  // everything.
  bool BeforeReply();
  void AfterReply();

  EventSink& sink_;
  const uint32_t interest_;
  ThreadSlot* const slot_;  // of the thread that made it
  std::optional<Parked> parked_;
};

}  // namespace tracefs
