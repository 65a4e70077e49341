// Tab-separated values: the worked example of docs/extending.md.
#pragma once

#include <memory>

#include "tracefs/export/exporter.h"

namespace tracefs {

// `out` outlives the exporter.
std::unique_ptr<Exporter> MakeTsvExporter(OutputBuffer& out,
                                          const ExportOptions& options);

}  // namespace tracefs
