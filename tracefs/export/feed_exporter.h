// What tracefs-dump makes of a feed: its lines.
#pragma once

#include <memory>

#include "tracefs/export/exporter.h"
#include "tracefs/feed/feed.h"

namespace tracefs {

std::unique_ptr<Exporter> MakeFeedExporter(OutputBuffer& out,
                                           std::unique_ptr<FeedFormat> feed);

}  // namespace tracefs
