// What a trace lacks for a replay, said before anything is done: of
// tracefs-replay --check and tracefs-dump --check-replayable.
#pragma once

#include <string>
#include <vector>

#include "tracefs/format/record.h"
#include "tracefs/replay/plan_builder.h"
#include "tracefs/replay/plan_file.h"

namespace tracefs::replay {

// What is known of a trace when all of it has gone through a PlanBuilder.
struct Checked {
  PlanHeader header;
  Lacks lacks;
  bool from_trace = false;  // false: a plan, of which only the header is known
  bool damaged = false;     // something recorded could not be read
  std::string visibility;   // property of the first trace that has it
  // The first of files_without_content.
  std::vector<std::string> unknown_files;

  void Add(const PlanBuilder& builder) {
    header = builder.header();
    lacks = builder.lacks();
    unknown_files = builder.unknown_files();
    from_trace = true;
  }
  // A trace, when it was read. After Add. One that is still being written, and
  // was read in between, is not `complete`: nothing is wrong with its end.
  void Add(const format::TraceContext& trace, bool complete = true) {
    if (visibility.empty()) {
      visibility = trace.description.header.Get("visibility");
    }
    header.lost += trace.stats.lost_events;
    if (complete) {
      damaged |= trace.stats.Bad();
      return;
    }
    format::ReadStats before_end = trace.stats;
    before_end.cut_bytes = 0;
    before_end.ended = false;
    damaged |= before_end.Bad();
  }
};

struct Finding {
  bool fatal = false;  // the replay cannot be right
  uint64_t count = 0;
  std::string key;                 // for JSON
  std::string text;                // what is missing, and what to do about it
  std::vector<std::string> files;  // the first of those that it is about
};

std::vector<Finding> FindLacks(const Checked& checked);

// What the trace asks for that a replay leaves out unless told to; then what
// comes of it differs from what was recorded.
std::vector<Finding> FindPrivileges(const Checked& checked);

// Whether one of them, or damage, prevents a right replay.
bool IsReplayable(const Checked& checked, const std::vector<Finding>& findings);

// Lines, or a JSON object; with a line end.
std::string LacksText(const Checked& checked,
                      const std::vector<Finding>& findings, bool json);

}  // namespace tracefs::replay
