// Numbers that traces hold as opaque bytes, as tracefs-anon encrypts them:
// nothing can be compared with them, counted by them or summed up of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "tracefs/format/record.h"

namespace tracefs::reader {

// The numeric fields that a filter asks for, a bit each; 0 if it is none.
uint64_t FieldsInFilter(std::string_view filter);

// "cuid, inode: opaque bytes, …": those of `fields` that are opaque in what was
// read of the trace. "" if none is.
std::string OpaqueAmong(uint64_t fields, const format::TraceContext& trace);

}  // namespace tracefs::reader
