// --check: what a trace lacks for a replay, said before anything is done.
#pragma once

#include <string>
#include <vector>

#include "tracefs/tools/replay/compile.h"

namespace tracefs {

struct Lack {
  bool fatal = false;  // the replay cannot be right
  uint64_t count = 0;
  std::string key;   // for JSON
  std::string text;  // what is missing, and what to do about it
};

std::vector<Lack> FindLacks(const Compiled& compiled);

// Lines, or a JSON object; with a line end.
std::string LacksText(const Compiled& compiled,
                      const std::vector<Lack>& findings, bool json);

}  // namespace tracefs
