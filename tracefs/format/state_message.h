// State messages: what a file was when the trace first touched it, and what it
// was in the end. FORMAT.md section 8d.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "tracefs/base/bytes.h"
#include "tracefs/event/file_state.h"
#include "tracefs/event/file_states.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/format/message_writer.h"

namespace tracefs::format {

struct Record;

// As readers hand it out; views hold during the call.
struct StateRecord {
  // Else: at the first touch.
  bool at_end = false;
  bool is_open = false;  // when the tracer began: also kFh and kFlags
  // It was changed meanwhile: what the operations say counts more.
  bool late = false;
  bool incomplete = false;
  ByteSpan xattrs;
  ByteSpan ranges;
  bool has_ranges = false;
  // Times, numbers and texts, as those of an operation: kTime, kInode, kMode,
  // …; kPath in the end, and of open files that have a name.
  const Record* file = nullptr;

  // False if the bytes are not what they should be.
  bool ForEachXattr(
      const std::function<void(std::string_view name, std::string_view value)>&
          visit) const;
  bool ForEachRange(
      const std::function<void(uint64_t offset, uint64_t length)>& visit) const;
};

using StateSink = std::function<void(const StateRecord&)>;

// `path`: empty at the first touch. False, and nothing written, if it does not
// fit.
bool WriteState(MessageWriter& out, const FileState& state, uint64_t time_ns,
                bool late, bool at_end, std::string_view path);

// Likewise of a file that is open when a tracer begins.
bool WriteOpenFile(MessageWriter& out, const OpenFile& file, uint64_t time_ns);

// Reads the arguments that only states have. False if they end within one.
bool ReadState(ByteSpan arguments, const ArgumentWidths& widths,
               StateRecord* record);

// True of an argument that only states have.
bool IsStateArgument(uint16_t arg_id);

}  // namespace tracefs::format
