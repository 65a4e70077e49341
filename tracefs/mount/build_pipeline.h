// From a config to tracers: the only place that knows filters, drivers and
// their tables together.
#ifndef TRACEFS_MOUNT_BUILD_PIPELINE_H_
#define TRACEFS_MOUNT_BUILD_PIPELINE_H_

#include <span>
#include <string>
#include <vector>

#include "config/config.h"
#include "drivers/output/table.h"
#include "filters/input/filter.h"
#include "filters/input/name_service.h"
#include "filters/input/name_table.h"
#include "tracefs/base/status.h"
#include "tracefs/mount/trigger_tap.h"
#include "tracefs/pipeline/tracer.h"

namespace tracefs {

// A tracer that is ready to be started, with its output open. What the header
// says of machine and mount is still to be added.
struct TracerPlan {
  TracerParts parts;
  std::vector<OutputFileId> files;
  // To be set before the tracer starts: told of files that come and go.
  std::shared_ptr<OutputFileChange> file_change;
  std::shared_ptr<FlightControl> flight;  // null: no flight recorder
};

// The words that configs may use: all tables together.
ConfigNames KnownNames();

// What the grammar cannot see of a tracer's output section.
Status CheckOutput(const Config& file, const TracerConfig& config);

// The compiled filter of one tracer of `file`.
Result<Filter> CompileFilter(const Config& file, const TracerConfig& config,
                             const NameService& users, NameTable& names);

struct PlanOptions {
  const NameService* users = &SystemNameService();
  uint32_t first_id = 1;  // the others follow
  // Files made for the outputs, as WishedFiles has them; null: made here.
  std::vector<UniqueFd>* files = nullptr;
};

// Prepares the tracers of a config, all of them or none. Filters share `names`,
// which outlives them.
Result<std::vector<TracerPlan>> PlanTracers(const Config& config,
                                            NameTable& names,
                                            PlanOptions options);

// Checks all that can be checked without opening anything, and says which
// files PlanTracers would make, in its order.
Result<std::vector<OutputFileWish>> WishedFiles(const Config& config,
                                                const NameService& users,
                                                NameTable& names);

// Adds the properties of `common` to those of `header`.
void AddProperties(const format::TraceHeader& common,
                   format::TraceHeader* header);

// A random number for a new trace.
Result<format::Serial> NewSerial();

// Some tracer asks who did it.
bool NeedCallers(std::span<const TracerPlan> plans);
// Some tracer may record reads or writes.
bool RecordsData(std::span<const TracerPlan> plans);
// Some filter names a lock operation and may keep it: lock requests must come
// to us. A filter that merely does not exclude them leaves them to the kernel,
// whose locks cost nothing and detect deadlocks.
bool NamesLocks(std::span<const TracerPlan> plans);

}  // namespace tracefs

#endif  // TRACEFS_MOUNT_BUILD_PIPELINE_H_
