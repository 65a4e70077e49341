// What every command does alike around its work: says what was wrong with its
// options, answers --help and --version, and ends with the status of its fate.
#pragma once

#include <atomic>
#include <string>
#include <string_view>

#include "tracefs/base/status.h"
#include "tracefs/command/help_page.h"

namespace tracefs {

struct CommandFront {
  std::string_view name;  // "tracefs-dump"
  HelpPage (*help)();
  std::string (*version)() = nullptr;  // null: VersionLine()
  // What it runs must find the signals as they were.
  bool leaves_signals = false;
};

// "tracefs-dump 0.1.0", what else there is to say, and a line end.
std::string VersionLine(std::string_view name, std::string_view more = {});

// Says on standard error, after the name of the command, why it failed, if it
// did. Returns its exit status.
int Finish(std::string_view name, const Status& status);

// The same for a command that only prints a text.
int FinishWith(std::string_view name, std::string_view text);

// Whoever started this process may have left it anything. A reader that goes
// away, and a file that may grow no further, are errors of the write, and not
// its end; waiting for a child tells how it ended.
void SetSignals();

// The main() of a command. Options have `help` and `version`; `work` takes them
// and returns the exit status.
template <typename Options, typename Work>
int RunCommand(const CommandFront& front, const Result<Options>& options,
               const Work& work) {
  if (!options.ok()) return Finish(front.name, options.status());
  if (options->help) {
    return FinishWith(front.name, HelpText(front.help(), options->help));
  }
  if (options->version) {
    return FinishWith(front.name, front.version == nullptr
                                      ? VersionLine(front.name)
                                      : front.version());
  }
  if (!front.leaves_signals) SetSignals();
  return work(*options);
}

// Becomes true with the first SIGINT, SIGTERM or SIGHUP from now on; a second
// one ends the process at once. A SIGHUP that is ignored (nohup) stays so.
const std::atomic<bool>& StopAtSignals();

}  // namespace tracefs
