// What a replay came to, for people and for programs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tracefs/replay/compile.h"
#include "tracefs/replay/outcome.h"
#include "tracefs/replay/prepare.h"
#include "tracefs/replay/privilege.h"
#include "tracefs/tools/replay/options.h"

namespace tracefs {

struct EndState {
  bool compared = false;
  std::string digest;  // of DIR
  uint64_t differences = 0;
  std::vector<std::string> first;  // of them
  uint64_t made_up = 0;            // files with contents that are not recorded
  std::vector<std::string> made_up_files;  // the first of them
  uint64_t not_compared = 0;
};

struct ReplayReport {
  const replay::Compiled* compiled = nullptr;
  const ReplayOptions* options = nullptr;
  replay::Prepared prepared;
  replay::Outcome outcome;
  EndState end;
  bool made_tree = false;  // what was there before was made by the replay
  replay::PrivilegeCounts left_out{};
  double processor_s = 0;  // used by this process while it replayed

  // All that it covers was compared, and is the same.
  bool Good() const {
    return outcome.mismatched() == 0 && outcome.untimed_failed == 0 &&
           end.differences == 0 && prepared.failed == 0 &&
           prepared.other_contents == 0 && header().unplaced_changes == 0 &&
           header().operations != 0 && header().lost == 0 &&
           !compiled->damaged && !MadeUp() && !IsLeftOut();
  }
  // Something was not done because it was not asked for.
  bool IsLeftOut() const { return left_out != replay::PrivilegeCounts{}; }
  // It has contents that were not recorded, and --data did not ask for them.
  bool MadeUp() const;

  const replay::PlanHeader& header() const { return compiled->header; }
};

// A line for each kind that was left out, and which option asks for it.
std::string LeftOutText(const ReplayReport& report);
std::string ReportText(const ReplayReport& report);
std::string ReportJson(const ReplayReport& report);

}  // namespace tracefs
