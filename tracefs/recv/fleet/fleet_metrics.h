// What tracefs-recv --from tells of itself (docs/metrics.md).
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "tracefs/base/status.h"

namespace tracefs {

// Written by the receiver's thread, read by any.
struct FleetState {
  using Count = std::atomic<uint64_t>;
  std::atomic<bool> connected = false;  // to the broker
  Count losses = 0;                     // how often it was lost, or not found
  Count blocks = 0;                     // stored
  Count bytes = 0;                      // taken, as they came
  Count doubled = 0;                    // were stored before
  Count late = 0;     // came after those that follow them were stored
  Count gaps = 0;     // did not come in time
  Count refused = 0;  // damaged, not sealed, of an unknown host
  Count left = 0;     // with the broker, for lack of a key
  Count files = 0;    // of tables
  Count merged = 0;   // small files that became part of larger ones
  Count removed = 0;  // days of hosts, by --keep
  Count removed_bytes = 0;
  Count keep_failures = 0;  // of merging and removing
  Count disk_failures = 0;
  std::atomic<int> disk_error = 0;  // errno of the last; 0: it writes again
  Count last_turn_ns = 0;           // when the receiver last looked around
};

// `directory`: where it stores, or negative.
std::string FleetMetrics(const FleetState& state, int directory);

// kSystem, and why, if nothing is stored at the moment.
Status FleetHealth(const FleetState& state, uint64_t now_ns);

}  // namespace tracefs
