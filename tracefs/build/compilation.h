// What compilers, linkers and archivers were told to do, from their command
// lines.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tracefs/base/absolute_path.h"
#include "tracefs/build/build_config.h"
#include "tracefs/build/process_tracker.h"

namespace tracefs::build {

// Paths are absolute, as far as the working directory is known.
struct Compilation {
  using Definition = std::pair<std::string, std::string>;  // name, value

  std::vector<std::string> files;
  std::vector<std::string> include_paths;
  std::vector<Definition> definitions;
  std::vector<Definition> undefinitions;
  std::vector<std::string> headers;  // -include, -imacros
  std::vector<std::string> objects;
  int language = 1;  // 1 C, 2 C++
};

// Whether it runs compilers for others, or has what they once made: ccache and
// the like, under their own name or a compiler's.
bool IsLauncher(const Image& image);
// What a launcher that is called by its own name was told to run, by way of
// other launchers, too; any other image as it is.
Image Launched(const Image& image);

// Whether it is a compiler's driver, by its name.
bool IsDriver(const BuildConfig& config, const Image& image);
// The file that a word of a command line names as having more words ("@FILE");
// empty: it is none of these.
std::string_view ResponseFile(std::string_view word);
// Whether words of it are in such files.
bool HasMoreInFiles(const Image& image);
// What the command line of a driver says, whoever compiles; nothing if no
// source file is compiled. Where it leaves that to a file, the compilers proper
// that it ran say it.
using Compilers = std::vector<std::shared_ptr<const Image>>;
std::optional<Compilation> ReadDriver(const BuildConfig& config,
                                      const Image& image,
                                      const Compilers& compilers);
// Whether it is a launcher that was told to run a driver: what it runs for that
// is told with it. Of programs that one process runs, as where a launcher gives
// way to the driver, the last one is told.
bool LaunchesDriver(const BuildConfig& config, const Image& image);

// Whether it is a compiler proper (cc1, cc1plus), which a driver runs.
bool IsCompilerProper(const Image& image);
// Whether it is a driver that compiles in its own process.
bool IsIntegrated(const BuildConfig& config, const Image& image);
// Where a compiler proper of gcc looks for headers by itself, as it is
// installed and called: those of these folders that exist, in this order.
std::vector<std::string> SystemFolders(const Image& compiler);

struct Linking {
  std::string file;
  bool linked = true;  // false: an archive
};
std::optional<Linking> FindLinking(const BuildConfig& config,
                                   const Image& image);

// What was to run, by an absolute path: of a script the script, else what runs.
std::string ProgramPath(const Image& image);

}  // namespace tracefs::build
