// Who started whom, with what each process was told to do, how long it lived,
// how it ended, and what it did with files; beside each a bar of its life.
#pragma once

#include <memory>

#include "tracefs/export/exporter.h"
#include "tracefs/export/table.h"

namespace tracefs {

inline constexpr ExportChoice kTreeChoices[] = {
    {"bars", "yes no", "when each process lived; default yes"},
    {"width", "N", "of these, in characters; default 24"},
};

std::unique_ptr<Exporter> MakeTreeExporter(OutputBuffer& out,
                                           const ExportOptions& options);

}  // namespace tracefs
