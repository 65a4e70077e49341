// What a receiver serves with --metrics: /metrics (docs/metrics.md) and
// /health.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "tracefs/base/status.h"
#include "tracefs/recv/receiver_counts.h"

namespace tracefs {

struct DiskRoom {
  uint64_t size_bytes = 0;
  uint64_t free_bytes = 0;  // for this user
};
// Of the file system of an open directory; none if it cannot be told.
std::optional<DiskRoom> RoomOf(int directory);

// `directory`: where traces are kept, a descriptor; -1: nowhere. Threads: any.
std::string ReceiverMetrics(const ReceiverCounts& counts, int directory);

// Whether it does its work: it looks after its senders, and its disk takes what
// they send.
Status ReceiverHealth(const ReceiverCounts& counts, uint64_t now_ns);

}  // namespace tracefs
