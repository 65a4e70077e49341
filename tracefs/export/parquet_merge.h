// Several Parquet files of ours as one with larger row groups. It reads what
// ParquetFile writes, and nothing else: whoever asks questions of tables has
// engines that read them.
#pragma once

#include <span>
#include <string>

#include "tracefs/base/status.h"
#include "tracefs/text/output_buffer.h"

namespace tracefs {

// The rows of the files (descriptors), one file after the other. All are of one
// trace: what they say of it becomes one, with the sum of what was lost, and
// with `name`. kCorrupt: one is damaged, or not ours; kInvalid: one has other
// columns than the first. A row group of each is in memory.
Status MergeParquet(std::span<const int> files, const std::string& name,
                    OutputBuffer& out);

}  // namespace tracefs
