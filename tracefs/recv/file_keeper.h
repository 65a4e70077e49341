// FileKeeper: one file for each trace, in one directory.
//
// Blocks are written as they come and acknowledged after fdatasync(2), which a
// thread of its own does for many at a time. An existing file is scanned first,
// by another thread, which takes turns among waiting clients: the trace goes on
// after its last whole block. That position is remembered while the file stays
// unchanged.
#pragma once

#include <memory>
#include <string>

#include "tracefs/recv/keeper.h"
#include "tracefs/recv/receiver_counts.h"
#include "tracefs/recv/retention.h"

namespace tracefs {

struct FileKeeperOptions {
  std::string directory;
  uint64_t max_trace_bytes = 0;  // 0: as the disk has room
  size_t max_traces = 65536;     // files in the directory
  RetentionRules retention = {};
  ReceiverCounts* counts = nullptr;  // outlives the keeper; null: its own
};

// Opens the directory; starts nothing. kSystem if it cannot be used, or another
// receiver uses it.
Result<std::unique_ptr<Keeper>> MakeFileKeeper(FileKeeperOptions options);

}  // namespace tracefs
