// What the header of a trace embeds of how it was recorded, as it was given.
#pragma once

#include <string>
#include <string_view>

#include "tracefs/format/trace_header.h"

namespace tracefs {

// What was read is not in the header: embedded_files.h.
inline constexpr std::string_view kExtractFiles = "files";

// "config, filter, dag, command, environment, versions, files"
std::string ExtractNames();

// `config` is a file that tracefs-mount takes; the others are lines. Empty if
// the header has nothing of it.
std::string ExtractFrom(const format::TraceHeader& header,
                        std::string_view name);

}  // namespace tracefs
