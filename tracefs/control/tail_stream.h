// What a client of the control socket gets from a tracer that lives while the
// client listens.
#pragma once

#include <functional>
#include <memory>

#include "tracefs/control/handler.h"
#include "tracefs/pipeline/block_queue.h"

namespace tracefs {

// The stream that empties `queue`; calls `on_end`, once, when it is destroyed.
std::shared_ptr<ControlStream> MakeTailStream(std::shared_ptr<BlockQueue> queue,
                                              std::function<void()> on_end);

}  // namespace tracefs
