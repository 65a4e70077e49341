// What this mount lets the kernel do by itself, and why: `tracefs-ctl explain`.
#pragma once

#include <string>
#include <vector>

#include "tracefs/fs/file_system.h"
#include "tracefs/mount/queue_threads.h"
#include "tracefs/mount/transport.h"
#include "tracefs/pipeline/pipeline.h"
#include "tracefs/process/process_watch.h"
#include "tracefs/process/system_calls.h"

namespace tracefs {

struct ExplainedChoice {
  // A tracer that forced it, by an operation that it may record.
  struct Cause {
    Op op{};
    Interested who;
  };

  std::string subject;  // "transport", "names", "reads and writes", …
  std::string choice;   // "kept for 10 ms"
  std::string why;      // where no tracer is the cause, and what else to know
  std::vector<Cause> causes;
  std::string hides;      // what no tracer can see for it; "" = nothing
  bool for_good = false;  // as chosen at the mount, whichever tracers come
};

// Threads: any.
std::vector<ExplainedChoice> ExplainMount(const FileSystem& fs,
                                          const Pipeline& pipeline,
                                          const TransportChoice& transport,
                                          const QueueThreads& queue_threads);

// The sources of system calls and processes, if any tracer wants them. `watch`
// may be null. Threads: any.
std::vector<ExplainedChoice> ExplainSources(const SystemCalls& calls,
                                            const ProcessWatch* watch);

// "passthrough", …
const char* IoModeName(IoMode mode);

}  // namespace tracefs
