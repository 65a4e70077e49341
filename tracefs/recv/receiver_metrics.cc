#include "tracefs/recv/receiver_metrics.h"

#include <sys/vfs.h>

#include "tracefs/base/clock.h"
#include "tracefs/export/openmetrics.h"

namespace tracefs {
namespace {

// Indexes of kFamilies.
enum Id : size_t {
  kBuild,
  kCpu,
  kSenders,
  kConnections,
  kWelcomed,
  kRefused,
  kBlocks,
  kBytes,
  kTraces,
  kRemoved,
  kRemovedBytes,
  kDiskSize,
  kDiskFree,
  kDiskUp,
  kDiskFailures,
  kReloads,
};

constexpr OpenMetricsPage::Family kFamilies[] = {
    {"tracefs_build", "info", "", "The version that runs."},
    {"process_cpu_seconds", "counter", "seconds",
     "Processor time of the receiver."},
    {"tracefs_recv_senders", "gauge", "", "Connections now."},
    {"tracefs_recv_connections", "counter", "", "Connections so far."},
    {"tracefs_recv_welcomed", "counter", "",
     "Connections whose trace was taken."},
    {"tracefs_recv_refused", "counter", "",
     "Connections that were refused, by reason."},
    {"tracefs_recv_blocks", "counter", "", "Whole and good blocks taken."},
    {"tracefs_recv_bytes", "counter", "bytes", "Bytes of traces taken."},
    {"tracefs_recv_traces", "gauge", "", "Files in the directory."},
    {"tracefs_recv_removed", "counter", "", "Traces removed by --keep."},
    {"tracefs_recv_removed_bytes", "counter", "bytes", "Bytes of those."},
    {"tracefs_recv_disk_size_bytes", "gauge", "bytes",
     "Size of the directory's file system."},
    {"tracefs_recv_disk_free_bytes", "gauge", "bytes",
     "Room that the receiver may use there."},
    {"tracefs_recv_disk_up", "gauge", "",
     "1: the disk takes what comes; 0: the last block could not be written."},
    {"tracefs_recv_disk_failures", "counter", "",
     "Writes that the disk has refused."},
    {"tracefs_recv_reloads", "counter", "",
     "How often keys and certificates were to be read again, by result."},
};

// In the order of RefuseReason, from 1 on.
constexpr std::string_view kReasons[] = {
    "",         "version",     "bad_hello", "busy",
    "no_space", "not_allowed", "bad_data",  "too_large",
    "closing",  "superseded",  "slow"};
static_assert(std::size(kReasons) == ReceiverCounts::kReasons);

// Ten times a second is usual; a disk may hold it up for a while.
constexpr uint64_t kStuckNs = 30 * kNsPerSecond;

}  // namespace

std::optional<DiskRoom> RoomOf(int directory) {
  struct statfs fs {};
  if (directory < 0 || ::fstatfs(directory, &fs) != 0) return std::nullopt;
  const auto block = static_cast<uint64_t>(fs.f_bsize);
  return DiskRoom{fs.f_blocks * block, fs.f_bavail * block};
}

std::string ReceiverMetrics(const ReceiverCounts& counts, int directory) {
  OpenMetricsPage page(kFamilies);
  page.AddProcess(kBuild, kCpu);
  page.Gauge(kSenders, "", counts.senders);
  page.Count(kConnections, "", counts.connections);
  page.Count(kWelcomed, "", counts.welcomed);
  // Those that did not happen too: a rate needs a first value.
  for (size_t i = 1; i < std::size(kReasons); ++i) {
    page.Count(kRefused, MetricLabel("reason", kReasons[i]), counts.refused[i]);
  }
  page.Count(kBlocks, "", counts.blocks);
  page.Count(kBytes, "", counts.bytes);
  if (directory >= 0) {
    page.Gauge(kTraces, "", counts.traces);
    page.Count(kRemoved, "", counts.removed);
    page.Count(kRemovedBytes, "", counts.removed_bytes);
    if (const std::optional<DiskRoom> room = RoomOf(directory)) {
      page.Gauge(kDiskSize, "", room->size_bytes);
      page.Gauge(kDiskFree, "", room->free_bytes);
    }
    page.Gauge(kDiskUp, "", counts.disk_error == 0 ? 1 : 0);
    page.Count(kDiskFailures, "", counts.disk_failures);
  }
  page.Count(kReloads, MetricLabel("result", "done"), counts.reloads);
  page.Count(kReloads, MetricLabel("result", "refused"), counts.failed_reloads);
  return page.Text();
}

Status ReceiverHealth(const ReceiverCounts& counts, uint64_t now_ns) {
  const uint64_t last = counts.last_turn_ns;
  if (last != 0 && now_ns > last && now_ns - last > kStuckNs) {
    return Status::System(
        ETIMEDOUT, "no sender was looked after for " +
                       std::to_string((now_ns - last) / kNsPerSecond) + " s");
  }
  if (const int error = counts.disk_error; error != 0) {
    return Status::System(error, "the directory of traces");
  }
  return Status::Ok();
}

}  // namespace tracefs
