// From a config to tracers: the only place that knows filters, drivers and
// their tables together.
#ifndef TRACEFS_MOUNT_BUILD_PIPELINE_H_
#define TRACEFS_MOUNT_BUILD_PIPELINE_H_

#include <string>
#include <vector>

#include "config/config.h"
#include "drivers/output/file.h"
#include "filters/input/filter.h"
#include "filters/input/name_table.h"
#include "tracefs/base/status.h"
#include "tracefs/pipeline/tracer.h"

namespace tracefs {

// A tracer that is ready to be started, with its output open. What the header
// says of machine and mount is still to be added.
struct TracerPlan {
  TracerParts parts;
  std::vector<OutputFileId> files;
};

// The words that configs may use: all tables together.
ConfigNames KnownNames();

// The compiled filter of one tracer of `file`.
Result<Filter> CompileFilter(const Config& file, const TracerConfig& config,
                             NameTable& names);

// Reads a config file and prepares its tracers, all of them or none. Filters
// share `names`, which outlives them.
Result<std::vector<TracerPlan>> PlanTracers(const std::string& config_file,
                                            NameTable& names);

// Adds the properties of `common` to those of `header`.
void AddProperties(const format::TraceHeader& common,
                   format::TraceHeader* header);

// Some tracer asks who did it.
bool NeedCallers(const std::vector<TracerPlan>& plans);
// Some tracer may record reads or writes.
bool RecordsData(const std::vector<TracerPlan>& plans);
// Some filter names a lock operation and may keep it: lock requests must come
// to us. A filter that merely does not exclude them leaves them to the kernel,
// whose locks cost nothing and detect deadlocks.
bool NamesLocks(const std::vector<TracerPlan>& plans);

}  // namespace tracefs

#endif  // TRACEFS_MOUNT_BUILD_PIPELINE_H_
