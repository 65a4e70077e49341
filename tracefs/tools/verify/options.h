// The command line of tracefs-verify.
#pragma once

#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/command/help_page.h"

namespace tracefs {

struct VerifyOptions {
  HelpWish help = {};
  bool version = false;
  std::vector<std::string> keys;     // sources of keys
  std::vector<std::string> anchors;  // files
  std::string serial;                // "" = any
  std::string chain;                 // "" = what the preamble says
  bool accept_unsealed = false;
  bool accept_losses = false;
  bool unfinished = false;
  bool wait = false;
  bool quiet = false;
  std::vector<std::string> traces;  // files, folders, "-"
};

// kInvalid, with the next step, for what does not make sense.
Result<VerifyOptions> ParseVerifyOptions(int argc, const char* const* argv);

HelpPage VerifyHelp();

}  // namespace tracefs
