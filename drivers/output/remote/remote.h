// The network drivers (paper section 2.5: the socket driver): tcp, tls, unix.
// A trace goes to a tracefs-recv, and what the loss policy says happens while
// there is none.
#pragma once

#include <chrono>
#include <memory>

#include "drivers/output/remote/backlog.h"
#include "drivers/output/remote/dialer.h"
#include "drivers/output/remote/link.h"
#include "tracefs/pipeline/loss_policy.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

struct RemoteOptions {
  LinkOptions link;
  LossPolicy when_full = LossPolicy::kBlock;
  // For kBlock: how long a Write may wait for room.
  std::chrono::nanoseconds deadline = std::chrono::seconds(1);
  // Frames that wait to become durable, bytes: in memory or, with a spill
  // directory, on disk.
  uint64_t limit_bytes = uint64_t{16} << 20;
  std::shared_ptr<const SpillDirectory> spill;  // of kSpill
  size_t buffer_bytes = 0;                      // of a block; 0 = any
  // Release waits so long for the receiver, or for the deadline if that is
  // longer.
  std::chrono::nanoseconds linger = std::chrono::seconds(5);
};

// `leftovers`: of kSpill, a second dialer, for traces that a daemon which was
// killed left in the directory; else null.
//
// Write never waits longer than the deadline, whatever the receiver does. Flush
// waits until the receiver has all, for at most the deadline and at least a
// second; a trace may begin while the receiver cannot be reached. Release waits
// a little longer; what it cannot deliver stays in the spill directory, or is
// lost, and the status says so.
std::unique_ptr<OutputDriver> MakeRemote(RemoteOptions options,
                                         std::unique_ptr<Dialer> dialer,
                                         std::unique_ptr<Dialer> leftovers);

}  // namespace tracefs
