// JSON Lines: one object an operation. Keys, in this order and only where the
// trace has the value: ts (ns since the epoch), dur (ns), op, tid, pid, uid,
// gid, comm, path, path2, ino, fh, flags, mode, offset, size, result, errno
// (name, only on failure), inferred (only if true), tracer; then further
// fields by the JSON key of tracefs/event/field.h, "before": true for an
// operation that was about to run, and arguments this version does not know by
// the names the trace gives them. Text that is not UTF-8, and all data, is in
// KEY_b64 instead of KEY.
#pragma once

#include <memory>

#include "tracefs/export/exporter.h"

namespace tracefs {

// `out` outlives the exporter.
std::unique_ptr<Exporter> MakeJsonlExporter(OutputBuffer& out,
                                            const ExportOptions& options);

}  // namespace tracefs
