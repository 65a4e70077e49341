// What the pages of metrics of all receivers have: of the process, and of the
// disk on which it stores.
#pragma once

#include <array>
#include <cstdint>

#include "tracefs/text/openmetrics.h"

namespace tracefs {

// With these a page's families begin; its own follow.
inline constexpr std::array<OpenMetricsPage::Family, 6> kCommonFamilies = {{
    {"tracefs_build", "info", "", "The version that runs."},
    {"process_cpu_seconds", "counter", "seconds",
     "Processor time of the receiver."},
    {"tracefs_recv_disk_size_bytes", "gauge", "bytes",
     "Size of the directory's file system."},
    {"tracefs_recv_disk_free_bytes", "gauge", "bytes",
     "Room that the receiver may use there."},
    {"tracefs_recv_disk_up", "gauge", "",
     "1: the disk takes what comes; 0: the last block could not be written."},
    {"tracefs_recv_disk_failures", "counter", "",
     "Writes that the disk has refused."},
}};

// Those, then `own`.
template <size_t N>
constexpr auto WithCommonFamilies(const OpenMetricsPage::Family (&own)[N]) {
  std::array<OpenMetricsPage::Family, kCommonFamilies.size() + N> all;
  for (size_t i = 0; i < kCommonFamilies.size(); ++i)
    all[i] = kCommonFamilies[i];
  for (size_t i = 0; i < N; ++i) all[kCommonFamilies.size() + i] = own[i];
  return all;
}

void AddProcessMetrics(OpenMetricsPage& page);
// `directory`: an open one; negative: nothing is known of its room. `error`:
// errno of the last write, 0 if it went well.
void AddDiskMetrics(OpenMetricsPage& page, int directory, int error,
                    uint64_t failures);

}  // namespace tracefs
