// strace: a line an operation, as `strace -f -ttt -T -y -s 0` prints system
// calls. Each operation is told as the system call that asks the kernel for it,
// with paths below the mount point and the file handle in place of the number
// of a descriptor; docs/exports.md has the table. What no call asked for, or
// need not have asked for, is left out (strace_asked.h); left_out() counts it.
#pragma once

#include <memory>

#include "tracefs/export/exporter.h"
#include "tracefs/export/table.h"

namespace tracefs {

inline constexpr ExportChoice kStraceChoices[] = {
    {"lookups", "no yes",
     "tell what no call asked for, too, look-ups as newfstatat; default no"},
};

std::unique_ptr<Exporter> MakeStraceExporter(OutputBuffer& out,
                                             const ExportOptions& options);

}  // namespace tracefs
