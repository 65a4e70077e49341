#include "tracefs/recv/fleet/fleet_metrics.h"

#include <cerrno>

#include "tracefs/base/clock.h"
#include "tracefs/recv/common_metrics.h"
#include "tracefs/text/duration.h"

namespace tracefs {
namespace {

// Indexes of kFleetFamilies.
enum FleetFamily : size_t {
  kFleetBrokerUp = kCommonFamilies.size(),
  kFleetBrokerLosses,
  kFleetBlocks,
  kFleetBytes,
  kFleetDoubled,
  kFleetLate,
  kFleetGaps,
  kFleetRefused,
  kFleetLeft,
  kFleetFiles,
  kFleetMerged,
  kFleetRemoved,
  kFleetRemovedBytes,
  kFleetKeepFailures,
};

constexpr auto kFleetFamilies = WithCommonFamilies({
    {"tracefs_recv_broker_up", "gauge", "",
     "1: connected to the broker; 0: it is tried again."},
    {"tracefs_recv_broker_losses", "counter", "",
     "How often the broker was lost, or not found."},
    {"tracefs_recv_blocks", "counter", "", "Blocks stored."},
    {"tracefs_recv_bytes", "counter", "bytes", "Bytes taken from the broker."},
    {"tracefs_recv_doubled", "counter", "",
     "Blocks that came again after they had been stored."},
    {"tracefs_recv_late", "counter", "",
     "Blocks that came when later ones had been stored."},
    {"tracefs_recv_gaps", "counter", "", "Blocks that did not come in time."},
    {"tracefs_recv_refused_blocks", "counter", "",
     "Blocks that were damaged, not sealed or of an unknown host."},
    {"tracefs_recv_left_blocks", "counter", "",
     "Blocks that were left with the broker for lack of a key."},
    {"tracefs_recv_files", "counter", "", "Files of tables made."},
    {"tracefs_recv_merged", "counter", "",
     "Small files of tables that became part of larger ones."},
    {"tracefs_recv_removed", "counter", "", "Days of hosts removed by --keep."},
    {"tracefs_recv_removed_bytes", "counter", "bytes", "Bytes of those."},
    {"tracefs_recv_keep_failures", "counter", "",
     "How often files could not be merged, or days not be removed."},
});

// It looks around four times a second; a broker that is asked for, and a disk,
// may hold it up for a while.
constexpr uint64_t kFleetStuckNs = 60 * kNsPerSecond;

}  // namespace

std::string FleetMetrics(const FleetState& state, int directory) {
  OpenMetricsPage page(kFleetFamilies);
  AddProcessMetrics(page);
  page.Gauge(kFleetBrokerUp, "", state.connected ? 1 : 0);
  page.Count(kFleetBrokerLosses, "", state.losses);
  page.Count(kFleetBlocks, "", state.blocks);
  page.Count(kFleetBytes, "", state.bytes);
  page.Count(kFleetDoubled, "", state.doubled);
  page.Count(kFleetLate, "", state.late);
  page.Count(kFleetGaps, "", state.gaps);
  page.Count(kFleetRefused, "", state.refused);
  page.Count(kFleetLeft, "", state.left);
  page.Count(kFleetFiles, "", state.files);
  page.Count(kFleetMerged, "", state.merged);
  page.Count(kFleetRemoved, "", state.removed);
  page.Count(kFleetRemovedBytes, "", state.removed_bytes);
  page.Count(kFleetKeepFailures, "", state.keep_failures);
  AddDiskMetrics(page, directory, state.disk_error, state.disk_failures);
  return page.Text();
}

Status FleetHealth(const FleetState& state, uint64_t now_ns) {
  const uint64_t last = state.last_turn_ns;
  if (last != 0 && now_ns > last && now_ns - last > kFleetStuckNs) {
    return Status::System(ETIMEDOUT, "nothing was taken or looked for in " +
                                         SpanText(now_ns - last));
  }
  if (!state.connected) return Status::System(ENOTCONN, "the broker");
  if (const int error = state.disk_error; error != 0) {
    return Status::System(error, "the directory of traces");
  }
  return Status::Ok();
}

}  // namespace tracefs
