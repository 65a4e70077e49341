// A feed to a broker: the lines of a block are one message, and go the way that
// blocks go, with its queues, its spill directory and its acknowledgements.
#pragma once

#include <memory>

#include "drivers/output/feed/feed.h"

namespace tracefs {

// `framing` makes frames of blocks for a driver (MakeFraming): here each has
// lines in it instead of a block.
std::unique_ptr<Feed> MakeBrokerFeed(std::unique_ptr<FeedFormat> format,
                                     std::unique_ptr<OutputFilter> framing);

}  // namespace tracefs
