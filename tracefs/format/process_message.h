// Process records as messages: writer and reader. FORMAT.md section 8c.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "tracefs/base/bytes.h"
#include "tracefs/event/process_record.h"
#include "tracefs/format/message_cursor.h"
#include "tracefs/format/message_writer.h"

namespace tracefs::format {

// Takes what a reader finds; views hold during the call.
using ProcessRecordSink = std::function<void(const ProcessRecord&)>;

// Each end of a pipe in ARG_PIPES: descriptor 4, inode 8, access 1.
inline constexpr size_t kPipeInodeOffset = 4;
inline constexpr size_t kPipeAccessOffset = 12;
inline constexpr size_t kPipeBytes = 13;

// Nothing if messages of this id are not process records.
std::optional<ProcessRecord::Kind> ProcessKindOf(uint16_t msg_id);
uint16_t MessageOf(ProcessRecord::Kind kind);

// False, and nothing written, if it does not fit.
bool WriteProcessRecord(MessageWriter& out, const ProcessRecord& record);

// Reads the arguments of a process message; views point into them. False if
// they end within an argument: the record then has what came before.
bool ReadProcessRecord(ByteSpan arguments, const ArgumentWidths& widths,
                       ProcessRecord* record);

}  // namespace tracefs::format
