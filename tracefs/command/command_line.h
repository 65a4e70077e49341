// Command lines of the commands: options as rows, from which --help is made and
// by which what was given is read and judged, alike in all of them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"

namespace tracefs {

// An option, which is a row of --help.
struct CommandOption {
  std::string name;  // "output"; with its letter "output,o"; ",o": only that
  std::string value = {};  // stands for its value in --help; "": takes none
  std::string help = {};
  bool repeated = false;      // may be given several times
  std::string fallback = {};  // its value where it is not given
  // Names of other options, with blanks between: none of the first may be given
  // with it, and of the second at least one must be.
  std::string excludes = {};
  std::string needs = {};

  // "output" of "output,o".
  std::string long_name() const { return name.substr(0, name.find(',')); }
};
using CommandOptions = std::vector<CommandOption>;

// Rows below a heading of their own in --help.
struct OptionGroup {
  std::string heading;
  CommandOptions rows;
};

// --- Rows that several commands have.

CommandOption KeyOption();
CommandOption OutputOption();
CommandOption ToOption();
CommandOption WaitOption();
CommandOption HelpOption();
CommandOption VersionOption();

// "Options:" and a line or more for each row, then those of `more` alike.
std::string OptionsText(const CommandOptions& rows,
                        const std::vector<OptionGroup>& more = {});

// The options that a command was given.
class CommandLine {
 public:
  // `words`: the name under which Texts() has the arguments that are not
  // options; empty: there may be none. No option may be abbreviated. kInvalid:
  // what is wrong, what was probably meant, then `see_help`. With --help and
  // --version what goes together is not judged.
  static Result<CommandLine> Parse(int argc, const char* const* argv,
                                   const CommandOptions& options,
                                   const std::string& words,
                                   std::string_view see_help);

  bool Has(const std::string& name) const { return given_.contains(name); }
  // Its value, or the first one; empty where it was not given and has no
  // fallback.
  std::string Text(const std::string& name) const;
  std::vector<std::string> Texts(const std::string& name) const;

 private:
  Status Judge(const CommandOptions& options) const;

  // By name, ",o" as "-o".
  std::map<std::string, std::vector<std::string>> given_;
  std::map<std::string, std::string> fallbacks_;
};

// The words between the commas of each argument, empty ones left out.
std::vector<std::string> SplitAtCommas(
    const std::vector<std::string>& arguments);

}  // namespace tracefs
