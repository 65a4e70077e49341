// Batches in the structures of Arrow's C data interface (tracefs_reader.h).
#pragma once

#include <memory>
#include <vector>

#include "tracefs/reader/columns.h"
#include "tracefs/reader/tracefs_reader.h"

namespace tracefs::reader {

// The type of each batch: a struct with a child for each column. `out` is the
// caller's to release.
void ExportSchema(const std::vector<ColumnSpec>& specs, ArrowSchema* out);

// A batch; its memory lives until the caller has released all of it.
void ExportBatch(std::shared_ptr<const Batch> batch, ArrowArray* out);

}  // namespace tracefs::reader
