// ProcessSink: where whoever follows processes puts what it finds, for every
// tracer that keeps process records.
//
// One source at a time. Its records come in any order of time, but no earlier
// than it has promised with HoldBack.
#pragma once

#include <cstdint>

#include "tracefs/event/process_record.h"

namespace tracefs {

// What a tracer is to keep of what happens to processes, beside operations.
struct ProcessNeeds {
  bool records = false;
  bool environment = false;  // of programs that are run; only with records
};

// Threads: any, one at a time.
class ProcessSink {
 public:
  // For HoldBack: nothing is on the way; what comes later has a later time.
  static constexpr uint64_t kNothingHeld = UINT64_MAX;

  ProcessSink(const ProcessSink&) = delete;
  ProcessSink& operator=(const ProcessSink&) = delete;

  // What the tracers that run now want. Costs two loads.
  virtual ProcessNeeds Wanted() const = 0;

  // From now on no record will be of a moment before `since_ns` (monotonic):
  // until the next call traces keep their order back to that. A source that
  // stamps records itself calls it before it takes the time of one, and with
  // kNothingHeld when that one was taken; a source that reads what happened a
  // while ago, with the time up to which it has read all.
  virtual void HoldBack(uint64_t since_ns) = 0;

  // Writes it into all these traces. Never fails: what cannot be kept is
  // counted as lost.
  virtual void Take(const ProcessRecord& record) = 0;

  // So many records were lost on their way here, some time between the two
  // (monotonic ns): LossReason "overrun". 0 = not known how many, at least one.
  virtual void NoteOverrun(uint64_t count, uint64_t first_ns,
                           uint64_t last_ns) = 0;

 protected:
  ProcessSink() = default;
  ~ProcessSink() = default;
};

}  // namespace tracefs
