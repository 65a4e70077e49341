// What a receiver serves with --metrics: /metrics (docs/metrics.md) and
// /health.
#pragma once

#include <cstdint>
#include <string>

#include "tracefs/base/status.h"
#include "tracefs/recv/receiver_counts.h"

namespace tracefs {

// `directory`: where traces are kept, a descriptor; -1: nowhere. Threads: any.
std::string ReceiverMetrics(const ReceiverCounts& counts, int directory);

// Whether it does its work: it looks after its senders, and its disk takes what
// they send.
Status ReceiverHealth(const ReceiverCounts& counts, uint64_t now_ns);

}  // namespace tracefs
