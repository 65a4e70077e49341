#include "tracefs/recv/receiver_metrics.h"

#include "tracefs/base/clock.h"
#include "tracefs/recv/common_metrics.h"
#include "tracefs/text/duration.h"

namespace tracefs {
namespace {

// Indexes of kReceiverFamilies.
enum ReceiverFamily : size_t {
  kSenders = kCommonFamilies.size(),
  kConnections,
  kWelcomed,
  kRefused,
  kBlocks,
  kBytes,
  kTraces,
  kRemoved,
  kRemovedBytes,
  kReloads,
  kHelpers,  // three
};

constexpr auto kReceiverFamilies = WithCommonFamilies({
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
    {"tracefs_recv_reloads", "counter", "",
     "How often keys and certificates were to be read again, by result."},
    OpenMetricsPage::kHelperFamilies[0],
    OpenMetricsPage::kHelperFamilies[1],
    OpenMetricsPage::kHelperFamilies[2],
});

// In the order of RefuseReason, from 1 on.
constexpr std::string_view kReasons[] = {
    "",         "version",     "bad_hello", "busy",
    "no_space", "not_allowed", "bad_data",  "too_large",
    "closing",  "superseded",  "slow"};
static_assert(std::size(kReasons) == ReceiverCounts::kReasons);

// Ten times a second is usual; a disk may hold it up for a while.
constexpr uint64_t kReceiverStuckNs = 30 * kNsPerSecond;

}  // namespace

std::string ReceiverMetrics(const ReceiverCounts& counts, int directory) {
  OpenMetricsPage page(kReceiverFamilies);
  AddProcessMetrics(page);
  page.AddHelpers(kHelpers);
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
    AddDiskMetrics(page, directory, counts.disk_error, counts.disk_failures);
  }
  page.Count(kReloads, MetricLabel("result", "done"), counts.reloads);
  page.Count(kReloads, MetricLabel("result", "refused"), counts.failed_reloads);
  return page.Text();
}

Status ReceiverHealth(const ReceiverCounts& counts, uint64_t now_ns) {
  const uint64_t last = counts.last_turn_ns;
  if (last != 0 && now_ns > last && now_ns - last > kReceiverStuckNs) {
    return Status::System(
        ETIMEDOUT, "no sender was looked after for " + SpanText(now_ns - last));
  }
  if (const int error = counts.disk_error; error != 0) {
    return Status::System(error, "the directory of traces");
  }
  return Status::Ok();
}

}  // namespace tracefs
