// EventSink: all that the file system knows of tracing.
//
// For each request a handler asks what tracers want of it. Where that is
// nothing it makes no event, else a Recording:
//
//   if (const uint32_t interest = sink.InterestIn(op); interest != 0) {
//     Recording recording(sink, op, interest);  // it begins
//     recording.event.Set(…);                   // its arguments
//     if (recording.Wants(EventSink::kBefore)) recording.Before();
//     …                                         // it runs
//     recording.event.SetResult(…);
//     recording.End([&] { return fuse_reply_…; });
//   }
//
// What is to be recorded is recorded after the reply, where that can wait.
// Nothing here fails or changes the result of the operation. Not recorded if
// it is destroyed without End.
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
    kGate = 64,        // some tracer may want it not to be done: ask Refuses
    kSyscall = 128,  // some tracer records the system call: resolve it in time
    kDetails = 256,  // likewise CallerDetails
    // Begin and end are to say which of two that conflict took effect first.
    kOrder = 512,
  };

  EventSink(const EventSink&) = delete;
  EventSink& operator=(const EventSink&) = delete;

  // What tracers want of this operation: Interest bits. One relaxed load.
  uint32_t InterestIn(Op op) const {
    return interest_[Index(op)].load(std::memory_order_relaxed);
  }

  // True if an operation of this kind must not be done now, because a tracer
  // that may have to record it cannot, and was told to fail then. It is counted
  // as refused.
  bool Refuses(Op op);

  // Whether some tracer may record operations of kind event.op on the file that
  // the event tells about, whoever asks for them. For open: what nobody can
  // record, the kernel may do by itself.
  bool MayRecord(Event& event) const;

 protected:
  EventSink();
  ~EventSink();

  // From now on these are the tracers. Those before are used no more when the
  // lock of every slot has been revoked once.
  void Show(const TracerSet& tracers);
  ThreadSlots& slots() const { return *slots_; }

 private:
  friend class Parked;
  friend class Recording;

  std::array<std::atomic<uint32_t>, kOpCount> interest_{};
  // Read by a slot's owner inside the slot's lock.
  std::atomic<const TracerSet*> tracers_{nullptr};
  const std::unique_ptr<ThreadSlots> slots_;
};

// While it lives, an operation is known to go on without the thread that it
// began on. Threads: any.
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
  // `interest`: InterestIn(op), not 0. Sets op and begin time of the event.
  Recording(EventSink& sink, Op op, uint32_t interest);
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  bool Wants(EventSink::Interest what) const { return (interest_ & what) != 0; }

  // All arguments are there, and it runs now: for kBefore.
  void Before();

  // It is done: records it and calls `reply`, which lets its caller go on.
  // Returns what that returns.
  template <typename Reply>
  int End(Reply&& reply) {
    const bool recorded = BeforeReply();
    const int result = reply();
    if (!recorded) AfterReply();
    return result;
  }

  // It goes on without its thread (a lock that somebody else holds): some
  // thread ends it later. Once.
  void Park();

  Event event;

 private:
  ThreadSlot& Slot() const;
  // What must be done while the caller still waits. True if that was all.
  bool BeforeReply();
  void AfterReply();

  EventSink& sink_;
  const uint32_t interest_;
  ThreadSlot* const slot_;  // of the thread that made it
  std::optional<Parked> parked_;
};

}  // namespace tracefs
