// The front command `tracefs`: a door to all the others, for whoever does not
// know yet which one answers. docs/man/tracefs.1.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"
#include "tracefs/command/called_as.h"

namespace tracefs {

// What a command line of `tracefs` comes to: the words of another command, the
// first of which is its name ("tracefs-report"); or a text to print.
struct FrontAnswer {
  std::vector<std::string> words = {};
  std::string text = {};  // where `words` is empty
};

enum class PathKind { kMissing, kFile, kFolder };
using LookAtPath = std::function<PathKind(const std::string&)>;

// `words`: without "tracefs" itself. kInvalid: what is wrong, and what was
// probably meant.
Result<FrontAnswer> AnswerOfFront(std::span<const std::string> words,
                                  const LookAtPath& look);

std::string FrontHelp();

// Does what the command line asks for: calls one of `here`, or runs the command
// that is installed next to this program.
int FrontMain(std::span<const CalledAs> here, int argc, char** argv);

}  // namespace tracefs
