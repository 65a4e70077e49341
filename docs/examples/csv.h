// Comma-separated values: the worked example of docs/extending.md.
#ifndef TRACEFS_EXPORT_CSV_H_
#define TRACEFS_EXPORT_CSV_H_

#include <memory>

#include "tracefs/export/exporter.h"

namespace tracefs {

// `out` outlives the exporter.
std::unique_ptr<Exporter> MakeCsvExporter(OutputBuffer& out,
                                          const ExportOptions& options);

}  // namespace tracefs

#endif  // TRACEFS_EXPORT_CSV_H_
