// CTF 1.8: a folder for babeltrace2 and Trace Compass: `metadata`, and a stream
// for each trace. An event is called by its operation and has the fields that
// the trace has for it, by the names of columns.h: what differs in its fields
// is a class of its own. Operations that were lost are events_discarded.
#pragma once

#include <memory>

#include "tracefs/export/exporter.h"

namespace tracefs {

std::unique_ptr<Exporter> MakeCtfExporter(OutputBuffer& out,
                                          const ExportOptions& options);

}  // namespace tracefs
