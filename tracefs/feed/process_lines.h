// A process record, as a line of text and as one of JSON.
#pragma once

#include <string>

#include "tracefs/event/process_record.h"

namespace tracefs {

// Without the time, without a line end: `process KIND` and KEY=VALUE words, of
// keys as in JSON.
std::string ProcessText(const ProcessRecord& record);

// One object and a line end: `ts`, `process` (its kind), and what is known.
std::string ProcessJson(const ProcessRecord& record);

// "CLONE_VM|CLONE_VFORK"; the signal in the lowest byte is left out, bits
// without a name are added in hex; "0" where there are none.
std::string CloneFlagsText(uint64_t flags);

// "SIGSEGV"; "SIG99" of numbers without a name.
std::string SignalName(uint32_t signal);

}  // namespace tracefs
