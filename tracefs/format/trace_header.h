// TraceHeader: what block 0 of a trace says about the trace. Writer and reader
// of the START message, FORMAT.md section 5.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tracefs/base/bytes.h"
#include "tracefs/base/clock.h"
#include "tracefs/event/field.h"
#include "tracefs/format/message_writer.h"

namespace tracefs::format {

struct TraceHeader {
  uint32_t tracer_id = 0;
  ClockPair clock;
  // Key (no '=') and value, in the order they are to be printed. The keys this
  // version knows are listed in FORMAT.md.
  std::vector<std::pair<std::string, std::string>> properties;

  void Set(std::string_view key, std::string_view value);
  // The value of a property, or "".
  std::string_view Get(std::string_view key) const;
};

// Writes START with the names of all messages and arguments of this version.
// False, and nothing written, if it does not fit.
bool WriteStart(MessageWriter& out, const TraceHeader& header);

// Bytes that WriteStart needs. The header has a block of its own, which may be
// longer than a tracer's blocks of operations.
size_t StartBytes(const TraceHeader& header);

// The payload of block 0: one START message.
std::vector<std::byte> EncodeStartBlock(const TraceHeader& header);

// --- Reading.

// What a trace says of itself. Bounded: longer names are cut, and what is more
// than kMaxProperties is left out; both are hostile.
struct SelfDescription {
  static constexpr size_t kMaxNameBytes = 255;
  static constexpr size_t kMaxProperties = 4096;

  struct Argument {
    uint16_t width = 0;  // 0 = variable
    uint8_t type = 0;    // a FieldType, if this version knows it
    std::string name;
  };

  TraceHeader header;
  bool has_clock = false;
  std::map<uint16_t, std::string> messages;
  std::map<uint16_t, Argument> arguments;
};

// Reads the arguments of a START message, the six bytes of its head left out.
// False if they end within an argument; `description` then has what came
// before.
bool ReadStart(ByteSpan arguments, SelfDescription* description);

}  // namespace tracefs::format
