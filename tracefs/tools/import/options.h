// The command line of tracefs-import.
#pragma once

#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/command/help_page.h"
#include "tracefs/import/import.h"

namespace tracefs {

struct ImportCommand {
  HelpWish help = {};
  bool version = false;
  std::vector<std::string> files;
  std::string output;
  std::string from;  // "strace", "fio", or empty: what it looks like
  import::ImportOptions options;
};

// kInvalid, with the next step, for what does not make sense.
Result<ImportCommand> ParseImportOptions(int argc, const char* const* argv);

HelpPage ImportHelp();

}  // namespace tracefs
