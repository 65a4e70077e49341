// An alarm of a rule, as a line of text and as one of JSON.
#pragma once

#include <string>

#include "tracefs/format/alarm.h"

namespace tracefs {

// "mass rename: 41 renames …": what it says, in a few words, for people.
std::string AlarmSentence(const format::AlarmRecord& record);

// Without the time, without a line end: `alarm TITLE:` and KEY=VALUE words, of
// which each shows where it ends.
std::string AlarmText(const format::AlarmRecord& record);

// One object and a line end: `ts`, `alarm` (what the rule is called), what the
// rule counted, then the operation that made it fire with the keys that it has
// in its own line.
std::string AlarmJson(const format::AlarmRecord& record);

}  // namespace tracefs
