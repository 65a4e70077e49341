// Checks one value of a config against the row that describes it.
#pragma once

#include <string_view>

#include "config/config.h"

namespace tracefs {

// How a value was written.
enum class ValueForm : uint8_t { kAbsent, kWord, kString, kBlock };

// Sets `value`'s type, number and flags from its text. `what` names its owner
// in messages ("option buf"); `position` is the owner's. `needed`: an absent
// value is an error.
Status CheckValue(const OptionRow& row, ValueForm form, std::string_view what,
                  std::string_view file, SourcePosition position, bool needed,
                  ConfigValue* value);

}  // namespace tracefs
