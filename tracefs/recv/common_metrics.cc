#include "tracefs/recv/common_metrics.h"

#include <sys/vfs.h>

namespace tracefs {
namespace {

// Indexes of kCommonFamilies.
enum Id : size_t { kBuild, kCpu, kDiskSize, kDiskFree, kDiskUp, kDiskFailures };

}  // namespace

void AddProcessMetrics(OpenMetricsPage& page) { page.AddProcess(kBuild, kCpu); }

void AddDiskMetrics(OpenMetricsPage& page, int directory, int error,
                    uint64_t failures) {
  struct statfs fs {};
  if (directory >= 0 && ::fstatfs(directory, &fs) == 0) {
    const auto block = static_cast<uint64_t>(fs.f_bsize);
    page.Gauge(kDiskSize, "", fs.f_blocks * block);
    page.Gauge(kDiskFree, "", fs.f_bavail * block);  // for this user
  }
  page.Gauge(kDiskUp, "", error == 0 ? 1 : 0);
  page.Count(kDiskFailures, "", failures);
}

}  // namespace tracefs
