// HelpPage: what a command says of itself, in two forms: --help, which fits on
// a screen, and --help=all.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tracefs/command/command_line.h"

namespace tracefs {

struct HelpPage {
  std::string_view command;  // "tracefs-dump"
  std::string begin;         // how it is called, and what it does
  CommandOptions rows = {};
  std::vector<OptionGroup> groups = {};  // of --help=all
  // Names of the rows that --help has, with blanks between; empty: all.
  std::string_view common = {};
  std::string list = {};  // its commands, its questions: in both forms
  // Of --help=all alone, and what it is about: "the formats".
  std::string details = {};
  std::string_view details_of = {};
  // Lines; --help has the first three.
  std::vector<std::string_view> examples = {};
  std::string end = {};  // what its exit status means
};

// Ends with a line end.
std::string HelpText(const HelpPage& page, HelpWish wish);

}  // namespace tracefs
