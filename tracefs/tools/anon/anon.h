// The command tracefs-anon, without its main: tests call it.
#pragma once

#include <string>

#include "tracefs/tools/anon/options.h"

namespace tracefs::anonymize {

// Does what the options say. What there is to read goes to `out`; OK, or why
// not. With --audit, kCorrupt if there is a leak.
Status RunAnon(const AnonOptions& options, std::string* out);

}  // namespace tracefs::anonymize
