// fio: an I/O log for `fio --read_iolog`, version 3: opens and closes, reads,
// writes, syncs of data and of files, with the time since the first of them in
// us; a copy_file_range as reads and writes of the same bytes. Everything else
// has no place in it; left_out() counts it. Paths have no
// leading slash: fio takes them from its own working directory. A file that the
// trace uses without showing its opening is added and opened where it is first
// used.
#pragma once

#include <memory>

#include "tracefs/export/exporter.h"

namespace tracefs {

std::unique_ptr<Exporter> MakeFioExporter(OutputBuffer& out,
                                          const ExportOptions& options);

}  // namespace tracefs
