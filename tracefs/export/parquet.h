// Parquet: a table of operations for pandas, DuckDB, Spark and the like. One
// row group of each file that is being written is in memory. The columns are
// all those of columns.h, `timestamp`, which is `time` as readers know times,
// and `path_raw` and `path2_raw`, which have the bytes of paths whose text has
// escapes. What the traces say of themselves and lost is in the file's
// metadata, tracefs.traces.
//
// With partition=yes it is a folder, host=H/date=D/part-N.parquet, dates in
// UTC, as DuckDB (hive_partitioning) and Spark read them. A few of them are
// being written at a time; a day that comes again gets another part.
#pragma once

#include <memory>

#include "tracefs/export/exporter.h"
#include "tracefs/export/table.h"

namespace tracefs {

inline constexpr ExportChoice kParquetChoices[] = {
    {"partition", "no yes",
     "a folder, host=H/date=D/part-N.parquet; default no"},
    {"rows", "N", "rows of a row group at most; default 131072"},
    {"level", "N", "of zstd; default 1"},
};

std::unique_ptr<Exporter> MakeParquetExporter(OutputBuffer& out,
                                              const ExportOptions& options);

}  // namespace tracefs
