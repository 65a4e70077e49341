// The command line of tracefs-replay.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/command/help_page.h"
#include "tracefs/replay/compile.h"
#include "tracefs/replay/player.h"
#include "tracefs/replay/target_tree.h"

namespace tracefs {

// Its traces, keys, selection and plan are those of the compilation.
struct ReplayOptions : replay::CompileOptions {
  HelpWish help = {};
  bool version = false;

  std::string root;
  std::string digest_of;  // a directory: print its digest and nothing else
  std::string expect;     // a file with a digest
  bool check = false;     // say what the trace lacks and nothing else
  bool json = false;

  std::optional<bool> prepare;
  bool prepare_only = false;
  bool existing = false;
  bool verify_tree = true;
  uint32_t clones = 1;

  std::optional<replay::TracePoint> until;
  bool step = false;
  bool apply = false;
  std::string kept;  // where what was kept is now; empty: as the trace says

  replay::PlayOptions play;
  replay::TargetOptions target;
};

Result<ReplayOptions> ParseReplayOptions(int argc, const char* const* argv);
HelpPage ReplayHelp();

}  // namespace tracefs
