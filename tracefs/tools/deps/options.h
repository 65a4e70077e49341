// The command line of tracefs-deps.
#pragma once

#include <string>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/build/build_config.h"
#include "tracefs/build/dependencies.h"
#include "tracefs/command/help_page.h"
#include "tracefs/command/paged_output.h"

namespace tracefs {

// What is asked.
enum class DepsQuestion : uint8_t {
  kDependencies,
  kReverse,
  kSets,
  kCompileCommands,
  kCheckNinja,
  kCheckMake,
  kDoubleWrites,
  kRaces,
  kAbsent,
  kUnused,
  kRebuilt,
  kIndex,
  kCheckIndex,
};

struct DepsOptions {
  HelpWish help = {};
  bool version = false;
  PagerWish pager;
  DepsQuestion question = DepsQuestion::kDependencies;
  std::vector<std::string> targets;
  std::vector<std::string> traces;
  std::vector<std::string> keys;
  std::string format = "list";
  std::string declared;      // --check-ninja, --check-make
  std::string build_folder;  // where its names begin
  std::string before;        // --rebuilt
  std::string mount_point;   // in place of the header's
  bool has_mount_point = false;
  bool no_index = false;  // the trace is read, even if it has one
  bool sources = false;   // only files that no process was seen to write
  bool everything = false;
  build::DependencyOptions dependencies;
  build::BuildConfig config;  // of --config
};

// kInvalid, with the next step, for what does not make sense.
Result<DepsOptions> ParseDepsOptions(int argc, const char* const* argv);

HelpPage DepsHelp();

}  // namespace tracefs
