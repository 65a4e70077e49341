// The device driver (paper section 2.5: "raw device"): writes a trace straight
// to a block device, from its first byte on and over whatever is there. Behind
// the last block stands a frame header of zeros, which ends the trace for its
// readers (FORMAT.md section 2).
#pragma once

#include <memory>
#include <string>

#include "tracefs/base/unique_fd.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

struct DeviceOptions {
  std::string path = {};
  size_t buffer_bytes = 0;
  bool sync = false;  // O_DSYNC; without, durable at the end of the trace
};

class DeviceDriver {
 public:
  // Opens it for us alone: kSystem (EBUSY) if it is mounted or in other use.
  // Nothing is overwritten before the trace begins.
  static Result<UniqueFd> Open(const DeviceOptions& options);
  // `fd` is of Open. kInvalid if it is not a block device.
  static Result<std::unique_ptr<OutputDriver>> Create(DeviceOptions options,
                                                      UniqueFd fd);
};

}  // namespace tracefs
