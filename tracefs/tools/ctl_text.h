// The mount's answers as text for people.
#ifndef TRACEFS_TOOLS_CTL_TEXT_H_
#define TRACEFS_TOOLS_CTL_TEXT_H_

#include <string>
#include <string_view>

#include "tracefs/base/status.h"

namespace tracefs {

// Each takes the JSON that the command of its name answers (docs/control-
// protocol.md). kCorrupt if it is something else. What came from file names and
// configs is made safe for a terminal.
Result<std::string> ListText(std::string_view json);
Result<std::string> ExplainText(std::string_view json);
Result<std::string> StatsText(std::string_view json);
Result<std::string> RulesText(std::string_view json);
Result<std::string> AddText(std::string_view json);

}  // namespace tracefs

#endif  // TRACEFS_TOOLS_CTL_TEXT_H_
