// The asynchronous filter (paper sections 2.4 and 3): copies blocks into
// buffers and lets a thread of its own push them through the rest of the
// chain, so that compression, encryption and slow outputs do not hold up those
// who are traced.
//
// A fixed number of buffers goes around: from the empty queue to the writer, to
// the full queue, to the thread, and back. When no buffer is empty the policy
// decides; after one wait that ran out no one waits again before a buffer
// has become empty, so that a dead output costs the traced one deadline, not
// one for each block.
#pragma once

#include <memory>

#include "filters/output/when_full.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

struct AsyncOptions {
  size_t buffers = 16;
  size_t block_bytes = 0;  // of a buffer; 0 = the size of the chain's blocks
  WhenFull when_full = {};
};

// Flush waits until all that was written before is through, but no longer than
// the deadline (at least a second) for any one block to move. The last block of
// a trace is never dropped. Write is called by one thread at a time, as always.
std::unique_ptr<OutputFilter> MakeAsync(const AsyncOptions& options,
                                        std::unique_ptr<OutputFilter> next);

}  // namespace tracefs
