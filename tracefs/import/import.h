// What strace(1) wrote, as a trace of ours.
#pragma once

#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/import/strace_files.h"
#include "tracefs/import/tally.h"
#include "tracefs/import/trace_output.h"

namespace tracefs::import {

struct ImportOptions {
  std::string below = "/";  // the directory that is the root of the trace
  std::string folder;       // the first working directory, or empty
  std::string name;         // of the file, for the trace's header
};

// Reads the text twice: what a file was before is known only in the end.
// `files`: one, or with strace -ff one for each thread. kCorrupt if nothing in
// them is an operation, or they cannot be put in order.
Status ImportStrace(std::vector<StraceFile> files, const ImportOptions& options,
                    const TraceOutput::Write& write, ImportCounts* counts);

// The same of an iolog of fio(1), version 2 or 3. `fd` can be read at any
// offset.
Status ImportFio(int fd, const ImportOptions& options,
                 const TraceOutput::Write& write, ImportCounts* counts);

// A header with what is known of a foreign trace. `source`: "strace".
format::TraceHeader ForeignHeader(std::string_view source,
                                  const ImportOptions& options,
                                  uint64_t first_ns);

}  // namespace tracefs::import
