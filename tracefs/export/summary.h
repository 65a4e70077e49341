// What the traces that were read say of themselves and lost, as JSON: for
// formats that have a place for it.
#pragma once

#include <string>

#include "tracefs/export/exporter.h"

namespace tracefs {

// [{"name":…,"tracer":…,"bad":…,"lost":{REASON:COUNT},"properties":{…}},…]
std::string TracesAsJson(const ExportSummary& summary);

}  // namespace tracefs
