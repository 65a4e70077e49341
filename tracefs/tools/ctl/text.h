// The mount's answers as text for people.
#pragma once

#include <cstdint>
#include <map>
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
Result<std::string> HeldText(std::string_view json);
// Which process one of them holds, by the answer to `held`. kInvalid if there
// is none, or it is of a user.
Result<uint32_t> HeldProcess(std::string_view json, uint32_t hold);

// What --follow has shown.
struct AlarmsSeen {
  bool started = false;
  std::map<uint64_t, uint64_t> told;    // by tracer: alarms so far
  std::map<uint64_t, uint64_t> unseen;  // of the last answer: came and went
};
// A line for each alarm in the answer to `rules` that came after `seen`, which
// is brought up to date; of the first answer none.
Result<std::string> NewAlarms(std::string_view json, bool as_json,
                              AlarmsSeen* seen);

Result<std::string> AddText(std::string_view json);

}  // namespace tracefs
