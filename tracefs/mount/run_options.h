// The command line of tracefs-run, checked.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/command/help_page.h"
#include "tracefs/mount/options.h"
#include "tracefs/mount/run_additions.h"

namespace tracefs {

struct RunOptions {
  HelpWish help = {};
  bool version = false;
  std::string output;  // the trace; empty: a new one (default_trace.h)
  bool force = false;  // what is there is replaced
  std::string filter;
  std::string config;
  std::string source;  // the directory that is traced; "/" with `root`
  bool root = false;
  bool environment = false;
  AdditionOptions additions;
  std::vector<std::string> variables;  // of the environment, for the header
  bool processes = true;
  bool follow_daemons = false;
  bool quiet = false;
  bool verbose = false;
  std::set<std::string, std::less<>> let_go;
  Visibility visibility = Visibility::kAuto;
  KernelTransport transport = KernelTransport::kAuto;
  std::string sandbox;               // as of tracefs-mount
  std::vector<std::string> command;  // never empty
};

// kInvalid with a message that says what to do.
Result<RunOptions> ParseRunOptions(int argc, const char* const* argv);
HelpPage RunHelp();

}  // namespace tracefs
