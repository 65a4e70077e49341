// What Tracefs, the kernel and the machine say in a trace by themselves.
#pragma once

#include <string_view>

#include "tracefs/format/constants.h"

namespace tracefs::anonymize {

// False of an argument that a policy can only keep, because it holds words of
// Tracefs, if it is none of them: it tells something, of whatever else.
bool IsOwnWord(format::ArgId argument, std::string_view text);

// Properties whose text Tracefs and the kernel choose: no name of a file or a
// user gets into them.
bool IsOfTheMachine(std::string_view key);

}  // namespace tracefs::anonymize
