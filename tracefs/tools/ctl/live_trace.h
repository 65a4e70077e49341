// LiveTrace: the operations of a mount as they happen, from the stream that
// follows a `tail` request, in order of time.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "tracefs/base/clock.h"
#include "tracefs/base/status.h"
#include "tracefs/base/unique_fd.h"
#include "tracefs/format/aggregate.h"
#include "tracefs/format/record.h"
#include "tracefs/format/trace_merger.h"

namespace tracefs {

// How long after its end an interval's counts may come.
inline constexpr uint64_t kLateNs = 600 * kNsPerMs;

// Used by one thread.
class LiveTrace {
 public:
  // `stream`: of ControlClient::TakeStream.
  // `aggregate`: gets what was counted, during Next; may be empty.
  LiveTrace(UniqueFd stream, format::ReportSink report,
            format::AggregateSink aggregate = nullptr);

  // For poll(2): readable when there may be more.
  int fd() const { return fd_; }

  // The next operation; kWait if there is none that is certain to be the
  // oldest. One that has waited a third of a second is handed out all the same.
  format::ReadStep Next(format::Record* record);
  // Waits until there may be more, at most `patience`.
  void Wait(std::chrono::milliseconds patience) const;
  // What is there now is all.
  void Stop() { merger_.reader(0).Stop(); }

  // OK, or why the stream could not be read.
  const Status& status() const { return merger_.status(0); }
  const format::ReadStats& stats() const { return merger_.reader(0).stats(); }

 private:
  int fd_;
  mutable format::TraceMerger merger_;
  uint64_t waiting_since_ = 0;  // 0: nothing waits
};

}  // namespace tracefs
