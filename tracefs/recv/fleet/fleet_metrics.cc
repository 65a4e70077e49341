#include "tracefs/recv/fleet/fleet_metrics.h"

#include <cerrno>

#include "tracefs/base/clock.h"
#include "tracefs/export/openmetrics.h"
#include "tracefs/recv/receiver_metrics.h"

namespace tracefs {
namespace {

// Indexes of kFamilies.
enum Id : size_t {
  kBuild,
  kCpu,
  kBrokerUp,
  kBrokerLosses,
  kBlocks,
  kBytes,
  kDoubled,
  kLate,
  kGaps,
  kRefused,
  kLeft,
  kFiles,
  kDiskSize,
  kDiskFree,
  kDiskUp,
  kDiskFailures,
};

constexpr OpenMetricsPage::Family kFamilies[] = {
    {"tracefs_build", "info", "", "The version that runs."},
    {"process_cpu_seconds", "counter", "seconds",
     "Processor time of the receiver."},
    {"tracefs_recv_broker_up", "gauge", "",
     "1: connected to the broker; 0: it is tried again."},
    {"tracefs_recv_broker_losses", "counter", "",
     "How often the broker was lost, or not found."},
    {"tracefs_recv_blocks", "counter", "", "Blocks stored."},
    {"tracefs_recv_bytes", "counter", "bytes", "Bytes taken from the broker."},
    {"tracefs_recv_doubled", "counter", "",
     "Blocks that came again after they had been stored."},
    {"tracefs_recv_late", "counter", "",
     "Blocks that came after those behind them had been stored."},
    {"tracefs_recv_gaps", "counter", "", "Blocks that did not come in time."},
    {"tracefs_recv_refused_blocks", "counter", "",
     "Blocks that were damaged, not sealed or of an unknown host."},
    {"tracefs_recv_left_blocks", "counter", "",
     "Blocks that were left with the broker for lack of a key."},
    {"tracefs_recv_files", "counter", "", "Files of tables made."},
    {"tracefs_recv_disk_size_bytes", "gauge", "bytes",
     "Size of the directory's file system."},
    {"tracefs_recv_disk_free_bytes", "gauge", "bytes",
     "Room that the receiver may use there."},
    {"tracefs_recv_disk_up", "gauge", "",
     "1: the disk takes what comes; 0: the last block could not be written."},
    {"tracefs_recv_disk_failures", "counter", "",
     "Writes that the disk has refused."},
};

// It looks around four times a second; a broker that is asked for, and a disk,
// may hold it up for a while.
constexpr uint64_t kStuckNs = 60 * kNsPerSecond;

}  // namespace

std::string FleetMetrics(const FleetState& state, int directory) {
  OpenMetricsPage page(kFamilies);
  page.AddProcess(kBuild, kCpu);
  page.Gauge(kBrokerUp, "", state.connected ? 1 : 0);
  page.Count(kBrokerLosses, "", state.losses);
  page.Count(kBlocks, "", state.blocks);
  page.Count(kBytes, "", state.bytes);
  page.Count(kDoubled, "", state.doubled);
  page.Count(kLate, "", state.late);
  page.Count(kGaps, "", state.gaps);
  page.Count(kRefused, "", state.refused);
  page.Count(kLeft, "", state.left);
  page.Count(kFiles, "", state.files);
  if (const std::optional<DiskRoom> room = RoomOf(directory)) {
    page.Gauge(kDiskSize, "", room->size_bytes);
    page.Gauge(kDiskFree, "", room->free_bytes);
  }
  page.Gauge(kDiskUp, "", state.disk_error == 0 ? 1 : 0);
  page.Count(kDiskFailures, "", state.disk_failures);
  return page.Text();
}

Status FleetHealth(const FleetState& state, uint64_t now_ns) {
  const uint64_t last = state.last_turn_ns;
  if (last != 0 && now_ns > last && now_ns - last > kStuckNs) {
    return Status::System(
        ETIMEDOUT, "nothing was taken or looked for in " +
                       std::to_string((now_ns - last) / kNsPerSecond) + " s");
  }
  if (!state.connected) return Status::System(ENOTCONN, "the broker");
  if (const int error = state.disk_error; error != 0) {
    return Status::System(error, "the directory of traces");
  }
  return Status::Ok();
}

}  // namespace tracefs
