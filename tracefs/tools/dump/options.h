// The command line of tracefs-dump.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/time_window.h"
#include "tracefs/command/help_page.h"
#include "tracefs/command/paged_output.h"
#include "tracefs/export/exporter.h"
#include "tracefs/screen/look.h"
#include "tracefs/tools/dump/query_options.h"

namespace tracefs {

struct DumpOptions {
  HelpWish help = {};
  bool version = false;
  bool header = false;  // print what the traces say of themselves
  bool stats = false;   // print counts instead of operations
  std::string extract;  // print only what a header embeds: ExtractNames
  bool check_replayable = false;  // say what a replay lacks instead
  bool browse = false;            // a screen instead
  screen::ColourWish colour = screen::ColourWish::kAuto;  // of it
  PagerWish pager;
  bool follow = false;
  bool wait = false;  // until the traces are no longer being written
  std::string format = "text";
  std::string filter;  // "" = everything
  TimeStyle time = TimeStyle::kLocal;
  ExportOptions exported;     // its time is the one above
  bool safe_numbers = false;  // JSON: those a double cannot hold as strings
  std::string output;         // "" = standard output
  std::optional<TimeSpec> from;
  std::optional<TimeSpec> to;
  std::optional<QueryOptions> query;  // a table instead of a listing
  size_t limit = 0;                   // operations listed at most; 0 = all
  bool overlapping = false;           // also what was running at `from`
  std::vector<std::string> keys;  // sources of keys: a path, or file:PATH, …
  std::vector<std::string> traces;  // "-" = standard input
};

// kInvalid, with the next step, for what does not make sense.
Result<DumpOptions> ParseDumpOptions(int argc, const char* const* argv);

HelpPage DumpHelp();

}  // namespace tracefs
