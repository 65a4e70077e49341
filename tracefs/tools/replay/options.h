// The command line of tracefs-replay.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/base/time_window.h"
#include "tracefs/command/help_page.h"
#include "tracefs/replay/plan_builder.h"
#include "tracefs/replay/player.h"
#include "tracefs/replay/target_tree.h"

namespace tracefs {

// A place in a trace: an operation by its number, or a time.
struct TracePoint {
  std::optional<uint64_t> sequence = {};
  TimeSpec time = {};  // if that is not said; never one that needs the end
};

struct ReplayOptions {
  HelpWish help = {};
  bool version = false;

  std::vector<std::string> traces;  // or a plan
  std::vector<std::string> keys;
  std::string root;
  std::string plan;       // where to keep it; empty: nowhere
  std::string digest_of;  // a directory: print its digest and nothing else
  std::string expect;     // a file with a digest
  bool check = false;     // say what the trace lacks and nothing else
  bool json = false;

  std::optional<bool> prepare;
  bool prepare_only = false;
  bool existing = false;
  bool verify_tree = true;
  uint32_t clones = 1;

  std::string filter;
  std::optional<TracePoint> from;
  std::optional<TracePoint> to;
  std::optional<TracePoint> until;
  bool step = false;
  std::string undo;  // a filter
  bool apply = false;
  std::string kept;  // where what was kept is now; empty: as the trace says

  replay::BuilderOptions builder;
  replay::PlayOptions play;
  replay::TargetOptions target;
};

Result<ReplayOptions> ParseReplayOptions(int argc, const char* const* argv);
HelpPage ReplayHelp();

}  // namespace tracefs
