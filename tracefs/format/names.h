// Names, widths and types of everything a trace may hold, as this version
// writes them: the source of the self-description (FORMAT.md section 5) and the
// fallback of readers whose trace has lost it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/event/field.h"
#include "tracefs/format/constants.h"

namespace tracefs::format {

struct ArgumentInfo {
  uint16_t arg_id = 0;  // without kHasLength
  uint16_t width = 0;   // bytes; 0 = variable
  FieldType type{};
  DataClass data_class{};
  DataShape shape{};
  std::string_view name;  // static
};

// Every argument of this version, fields of operations first.
const std::vector<ArgumentInfo>& BuiltInArguments();
// Null for arguments that this version does not know.
const ArgumentInfo* FindArgument(uint16_t arg_id);

// Every message id of this version, in order.
const std::vector<uint16_t>& BuiltInMessages();

// "MSG_START", "MSG_OPEN", "MSG_BEFORE_OPEN"; "MSG_999" for an unknown id.
std::string MessageName(uint16_t msg_id);

}  // namespace tracefs::format
