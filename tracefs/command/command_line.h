// Command lines of the commands: options as rows, from which --help is made and
// by which what was given is read and judged, alike in all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/choice.h"
#include "tracefs/base/status.h"
#include "tracefs/base/time_window.h"
#include "tracefs/base/units.h"

namespace tracefs {

// An option, which is a row of --help.
struct CommandOption {
  std::string name;  // "output"; with its letter "output,o"; ",o": only that
  std::string value = {};  // stands for its value in --help; "": takes none
  std::string help = {};
  bool repeated = false;      // may be given several times
  std::string fallback = {};  // its value where it is not given
  // Its value where it is given without one, as --name alone; then one follows
  // only after '='.
  std::string implied = {};
  // Names of other options, with blanks between: none of the first may be given
  // with it, and of the second at least one must be.
  std::string excludes = {};
  std::string needs = {};
  // The words it takes, blanks or commas between; empty: any value. Others,
  // too, if `open`: then the words are what completion offers.
  std::string words = {};
  bool open = false;

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

// The rows as a JSON object, for programs that make something of them.
std::string OptionsAsJson(const CommandOptions& rows);

// Which help was asked for, if any was.
struct HelpWish {
  bool asked = false;
  bool all = false;  // --help=all
  explicit operator bool() const { return asked; }
};

// The options that a command was given.
class CommandLine {
 public:
  // `words`: the name under which Texts() has the arguments that are not
  // options; empty: there may be none. No option may be abbreviated. kInvalid:
  // what is wrong, what was probably meant, then `see_help`. With --help and
  // --version what goes together is not judged. --help=json alone prints
  // OptionsAsJson() and ends the process; --help=all is --help, too.
  static Result<CommandLine> Parse(int argc, const char* const* argv,
                                   const CommandOptions& options,
                                   const std::string& words,
                                   std::string_view see_help);

  bool Has(const std::string& name) const { return given_.contains(name); }
  HelpWish Help() const { return {.asked = Has("help"), .all = all_help_}; }
  // Sets `help` and `version` of what a command reads from this; true if one of
  // them was asked for: then nothing else counts.
  template <typename Options>
  bool AsksOnly(Options* options) const {
    options->help = Help();
    options->version = Has("version");
    return options->help || options->version;
  }
  // Its value, or the first one; empty where it was not given and has no
  // fallback.
  std::string Text(const std::string& name) const;
  std::vector<std::string> Texts(const std::string& name) const;

  // `*value` is its number, and stays what it is where it was not given.
  // kInvalid: it is no number from `min` to `max`.
  template <typename Number>
  Status Take(const std::string& name, uint64_t min, uint64_t max,
              Number* value) const {
    return TakeAs(&ParseUnsigned, "number", name, min, max, value);
  }
  // The same of sizes in bytes, such as 64K.
  template <typename Number>
  Status TakeSize(const std::string& name, uint64_t min, uint64_t max,
                  Number* value) const {
    return TakeAs(&ParseSize, "size", name, min, max, value);
  }
  // A number of rows from 1 on, or "all", which is 0.
  Status TakeRows(const std::string& name, std::optional<size_t>* rows) const;
  // A point in a trace; without a zone it is in local time or, if `utc`, UTC.
  Status TakeTime(const std::string& name, bool utc,
                  std::optional<TimeSpec>* time) const;
  // A word of a row that has WordsOf(choices).
  template <typename Value, size_t kCount>
  void Take(const std::string& name, const Choice<Value> (&choices)[kCount],
            Value* value) const {
    const std::string word = Text(name);
    for (const Choice<Value>& choice : choices) {
      if (choice.word == word) *value = choice.value;
    }
  }

 private:
  using Parser = std::optional<uint64_t> (*)(std::string_view);

  Status Judge(const CommandOptions& options) const;
  Status JudgeEmpty(const CommandOption& row) const;
  Status JudgeWords(const CommandOption& row) const;
  Status TakeChecked(Parser parse, std::string_view kind,
                     const std::string& name, uint64_t min, uint64_t max,
                     uint64_t* value) const;
  template <typename Number>
  Status TakeAs(Parser parse, std::string_view kind, const std::string& name,
                uint64_t min, uint64_t max, Number* value) const {
    auto number = static_cast<uint64_t>(*value);
    Status status = TakeChecked(parse, kind, name, min, max, &number);
    *value = static_cast<Number>(number);
    return status;
  }

  bool all_help_ = false;
  // By name, ",o" as "-o".
  std::map<std::string, std::vector<std::string>> given_;
  std::map<std::string, std::string> fallbacks_;
};

// The words between the commas of each argument, empty ones left out.
std::vector<std::string> SplitAtCommas(
    const std::vector<std::string>& arguments);

}  // namespace tracefs
