#include "tracefs/format/message_cursor.h"

#include "tracefs/format/names.h"

namespace tracefs::format {

ArgumentWidths::ArgumentWidths() {
  low_.fill(kUndescribed);
  for (const ArgumentInfo& argument : BuiltInArguments()) {
    Set(argument.arg_id, argument.width);
  }
}

void ArgumentWidths::Set(uint16_t arg_id, uint16_t width) {
  arg_id = static_cast<uint16_t>(arg_id & ~kHasLength);
  if (arg_id < low_.size()) {
    low_[arg_id] = width;
  } else {
    high_[arg_id] = width;
  }
}

const ArgumentWidths& BuiltInWidths() {
  static const auto* const kWidths = new ArgumentWidths;
  return *kWidths;
}

}  // namespace tracefs::format
