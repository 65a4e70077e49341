// EventSink: all that the file system knows of tracing.
//
// For each request a handler asks InterestIn(op); 0 means that nobody records
// such an operation, and the handler makes no event. Otherwise it makes one,
// calls Before (kBefore), runs the operation, stores result and duration,
// resolves the caller (kCaller) and calls BeforeReply (kBeforeReply) while the
// caller still waits, replies, and calls AfterReply. Where MustRecordNow says
// so, and where the data lies in a buffer that the reply ends (kData),
// AfterReply comes before the reply. No call fails or changes the result of the
// operation.
// Threads: any number of worker threads, each with its own event.
#ifndef TRACEFS_PIPELINE_EVENT_SINK_H_
#define TRACEFS_PIPELINE_EVENT_SINK_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "tracefs/base/clock.h"
#include "tracefs/event/event.h"

namespace tracefs {

// Who asked to see an operation, for explanations.
struct Interested {
  uint32_t tracer = 0;
  std::string name;    // of the tracer; may be empty
  std::string filter;  // the test its filter makes for the operation
};

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
  };

  virtual ~EventSink() = default;

  // What tracers want of this operation: Interest bits. One relaxed load.
  uint32_t InterestIn(Op op) const {
    return interest_[Index(op)].load(std::memory_order_relaxed);
  }

  // An operation begins that some tracer may record: returns its begin time.
  // Until Leave, by the same thread, it is known to run.
  virtual uint64_t Enter() { return MonotonicNs(); }
  virtual void Leave() {}
  // It goes on without its thread (a lock that somebody else holds) until
  // Unpark, by any thread, with the same begin time.
  virtual void Park(uint64_t /*begin_ns*/) {}
  virtual void Unpark(uint64_t /*begin_ns*/) {}

  virtual void Before(Event& event) = 0;
  virtual void BeforeReply(Event& event) = 0;
  virtual void AfterReply(Event& event) = 0;
  // True if the record would name something that this thread has not named
  // yet: once the reply is out, the file may be renamed or gone. If not,
  // AfterReply must follow, and finds the names where they are.
  virtual bool MustRecordNow(const Event& /*event*/) { return false; }

  // True if an operation of this kind must not be done now, because a tracer
  // that may have to record it cannot, and was told to fail then. It is counted
  // as refused.
  virtual bool Refuses(Op /*op*/) { return false; }

  // Whether some tracer may record operations of kind event.op on the file that
  // the event tells about, whoever asks for them. For open: what nobody can
  // record, the kernel may do by itself.
  virtual bool MayRecord(Event& event) const = 0;

  // The tracers that may record this operation. Not from a worker's handler.
  virtual std::vector<Interested> WhoWants(Op /*op*/) const { return {}; }

 protected:
  std::array<std::atomic<uint32_t>, kOpCount> interest_{};
};

}  // namespace tracefs

#endif  // TRACEFS_PIPELINE_EVENT_SINK_H_
