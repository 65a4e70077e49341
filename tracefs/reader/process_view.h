// A process record as the C interface hands it out.
#pragma once

#include <cstddef>
#include <vector>

#include "tracefs/event/process_record.h"
#include "tracefs/reader/tracefs_reader.h"

namespace tracefs::reader {

// Points into what the record points to, and into *pipes, which it fills.
tracefs_process ViewOf(const ProcessRecord& record, size_t trace,
                       std::vector<tracefs_pipe>* pipes);

}  // namespace tracefs::reader
