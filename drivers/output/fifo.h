// The fifo driver: hands a trace to whoever reads a named pipe.
//
// Readers come and go. Each gets a whole trace: the preamble, block 0 and what
// is recorded from then on; one that comes late finds a mark that says where it
// begins (FORMAT.md section 2.1). Blocks that nobody reads, or not fast enough,
// are lost by the policy and counted. No call waits longer than the deadline,
// and after a wait that ran out none waits again until something is read.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "drivers/output/output_folder.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

struct FifoOptions {
  std::string path = {};
  size_t buffer_bytes = 0;
  // How long a block may wait for a reader, or for room; 0: not at all.
  std::chrono::nanoseconds deadline{0};
};

class FifoDriver {
 public:
  // Makes the FIFO, 0600, unless there is one, which must be ours: of this user
  // or of root, and nobody else may write to it. That is looked at again for
  // each reader. SIGPIPE must be ignored.
  static Result<std::unique_ptr<OutputDriver>> Create(FifoOptions options,
                                                      OutputFolder folder);
  // What Create would be refused for as things are now; makes nothing.
  static Status Probe(const std::string& path, const OutputFolder& folder);
};

}  // namespace tracefs
