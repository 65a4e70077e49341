// The stream driver (paper section 2.3): one message for each kept operation,
// holding the fields its verbosity flags choose.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "tracefs/event/verbosity.h"
#include "tracefs/pipeline/stages.h"

namespace tracefs {

struct StreamFlagInfo {
  std::string_view name;  // "STR_PID"
  uint64_t bits;
  std::string_view help;
};

// Every flag, for configs, --help and the trace header. STR_ALL is everything
// but what its row names: what costs more to know, or makes traces much larger.
std::span<const StreamFlagInfo> StreamFlags();

// The bits of the flag of that name; 0 if there is none.
uint64_t StreamFlagBits(std::string_view name);

// A driver with these flags. Without STR_PRE_OP it records operations when
// they are done, whether STR_POST_OP is given or not.
std::unique_ptr<AssemblyDriver> MakeStream(uint64_t flags);

}  // namespace tracefs
