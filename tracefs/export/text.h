// Text: one line an operation, for people.
//
//   14:03:07.123456  12.4us cc1[812/813] u1000 open /src/a.c O_RDONLY -> 0
//
// time, duration, caller as name[process/thread] (~ before it: inferred), user,
// operation, path (=> second path or target), arguments, then -> result or the
// name of the error, or "..." where the operation was about to run. In
// brackets the attributes of the file, as ls has them. Where the day changes a
// line says so, unless each time has its date:
//
//   === 2026-01-03 +0100
#pragma once

#include <memory>

#include "tracefs/export/exporter.h"

namespace tracefs {

// `out` outlives the exporter.
std::unique_ptr<Exporter> MakeTextExporter(OutputBuffer& out,
                                           const ExportOptions& options);

}  // namespace tracefs
