// What a replay came to, for people and for programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tracefs/replay/outcome.h"
#include "tracefs/tools/replay/compile.h"
#include "tracefs/tools/replay/prepare.h"

namespace tracefs {

struct EndState {
  bool compared = false;
  std::string digest;  // of DIR
  uint64_t differences = 0;
  std::vector<std::string> first;  // of them
};

struct ReplayReport {
  const Compiled* compiled = nullptr;
  const ReplayOptions* options = nullptr;
  Prepared prepared;
  replay::Outcome outcome;
  EndState end;
  double processor_s = 0;  // used by this process while it replayed

  bool Good() const {
    return outcome.mismatched() == 0 && outcome.untimed_failed == 0 &&
           end.differences == 0 && prepared.failed == 0;
  }
};

std::string ReportText(const ReplayReport& report);
std::string ReportJson(const ReplayReport& report);

}  // namespace tracefs
