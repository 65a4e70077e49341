// What the records of tracepoints look like: the text that comes with them when
// they are opened (tracefs/daemon/tracepoints.h) made ready to use.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "tracefs/base/bytes.h"

namespace tracefs {

struct TracepointField {
  uint16_t offset = 0;
  uint16_t size = 0;  // 0: there is no such field
};

struct TracepointEvent {
  uint16_t number = 0;
  std::map<std::string, TracepointField, std::less<>> fields;

  TracepointField Field(std::string_view name) const {
    const auto found = fields.find(name);
    return found == fields.end() ? TracepointField{} : found->second;
  }
};

// By name, "sched/sched_process_exec". Lines that are none are passed over.
using TracepointLayout = std::map<std::string, TracepointEvent, std::less<>>;
TracepointLayout ParseTracepointLayout(std::string_view text);

// From the raw data of a record, whose sizes are not trusted:
// the number of its tracepoint,
std::optional<uint16_t> TracepointNumber(ByteSpan raw);
// a number of 1, 2, 4 or 8 bytes, zero-extended,
std::optional<uint64_t> TracepointValue(ByteSpan raw, TracepointField field);
// a text: of an array up to its zero byte, or, of a field of four bytes
// (__data_loc), where they say that it is.
std::optional<std::string_view> TracepointText(ByteSpan raw,
                                               TracepointField field);

}  // namespace tracefs
