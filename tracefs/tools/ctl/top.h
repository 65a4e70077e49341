// `tracefs-ctl top`: a screen over running mounts.
#pragma once

#include <atomic>

#include "tracefs/text/output_buffer.h"
#include "tracefs/tools/ctl/options.h"

namespace tracefs {

// Shows what happens in the mounts of `options` until they end, `q` is
// pressed, all rounds are done, or `stop` is set.
Status Top(const CtlOptions& options, OutputBuffer& out,
           const std::atomic<bool>& stop);

}  // namespace tracefs
