// Stacks: process > path > operation, and what each took: time, bytes or
// operations. For flame graphs.
//
// folded: a line for each stack, frames with ; between them, then the weight,
// as flamegraph.pl, inferno and llvm-xray's flames have it. speedscope: one
// document for speedscope.app, a profile of stacks with weights.
//
// What was counted is kept in memory until the end, as a tree; from
// kMaxStackNodes frames on what is new goes under its directory's "(other)".
#pragma once

#include <memory>

#include "tracefs/export/exporter.h"
#include "tracefs/export/table.h"

namespace tracefs {

inline constexpr size_t kMaxStackNodes = 2'000'000;

inline constexpr ExportChoice kStackChoices[] = {
    {"weight", "time bytes operations",
     "what stacks weigh: how long they took (ns), bytes read and written, or "
     "how many there were; default time"},
};

std::unique_ptr<Exporter> MakeFoldedExporter(OutputBuffer& out,
                                             const ExportOptions& options);
std::unique_ptr<Exporter> MakeSpeedscopeExporter(OutputBuffer& out,
                                                 const ExportOptions& options);

}  // namespace tracefs
