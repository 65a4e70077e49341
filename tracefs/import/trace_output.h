// TraceOutput: events of a foreign trace, as a trace of ours: the header, the
// messages and the names are those that the recorder makes, by its own driver.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "tracefs/base/bytes.h"
#include "tracefs/base/status.h"
#include "tracefs/event/event.h"
#include "tracefs/format/constants.h"
#include "tracefs/format/trace_header.h"
#include "tracefs/pipeline/block_builder.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs::import {

// Used by one thread.
class TraceOutput {
 public:
  // Takes the bytes of the trace, in order.
  using Write = std::function<Status(ByteSpan)>;

  // `header` lacks only what all traces say of themselves. The serial is the
  // same for the same `origin`, so that an import can be repeated.
  TraceOutput(Write write, format::TraceHeader header, std::string_view origin);

  // Writes what comes before all events.
  Status Begin();
  // The next event; its kTime is what the header's clock says. No later one
  // begins before `watermark_ns`. One that fits into no block is left out, and
  // the trace says so.
  Status Put(Event& event, uint64_t watermark_ns);
  // What ends a trace. Once.
  Status End(std::string_view reason);

 private:
  Status Flush();
  Status WriteFrame(ByteSpan payload);

  const Write write_;
  format::TraceHeader header_;
  format::Serial serial_{};
  std::unique_ptr<AssemblyDriver> stream_;
  BlockBuilder builder_;
  std::unique_ptr<Block> spare_;
  uint64_t sequence_ = 0;
  uint64_t watermark_ns_ = 0;
  uint64_t lost_ = 0;
  uint64_t events_ = 0;
  std::array<std::array<uint64_t, kOpCount>, 2> by_op_{};
};

}  // namespace tracefs::import
