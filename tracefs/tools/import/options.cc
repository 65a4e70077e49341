#include "tracefs/tools/import/options.h"

#include "tracefs/command/command_line.h"

namespace tracefs {
namespace {

constexpr char kSeeHelp[] = " (see tracefs-import --help)";

CommandOptions VisibleOptions() {
  return {{"output,o", "TRACE",
           "the trace to write; one that is there is replaced when the new one "
           "is complete"},
          {.name = "from",
           .value = "FORMAT",
           .help = "strace (-f or -ff, -ttt or -r, -T -y, and -s with a number "
                   "above the longest read and write), or fio (an iolog of "
                   "version 2 or 3); default: by the first line",
           .words = "strace fio"},
          {"below", "DIR",
           "strace: only files below this directory, which becomes the root of "
           "the trace; default: /, without /dev, /proc and /sys"},
          {"cwd", "DIR",
           "strace: the working directory at the start, if strace does not say "
           "it"},
          HelpOption(),
          VersionOption()};
}

}  // namespace

HelpPage ImportHelp() {
  return {
      .command = "tracefs-import",
      .begin =
          "Usage: tracefs-import [OPTION]... -o TRACE FILE...\n"
          "Make a trace of what others recorded: FILE is what strace wrote, or "
          "an iolog of\nfio. Of strace -ff -o FILE its files FILE.PID are put "
          "together. Says what was left\nout, and what had to be guessed.\n",
      .rows = VisibleOptions(),
      .examples = {"strace -f -ttt -T -y -s 1000000 -o log make",
                   "tracefs-import --below /w -o make.trace log",
                   "tracefs-replay make.trace --root /mnt/new",
                   "tracefs-import --from fio -o job.trace job.iolog"},
      .end =
          "Exit status: 0 done; 1 nothing in FILE is an operation; 2 wrong "
          "usage; 3 the\nsystem refused.\n"};
}

Result<ImportCommand> ParseImportOptions(int argc, const char* const* argv) {
  const Result<CommandLine> line =
      CommandLine::Parse(argc, argv, VisibleOptions(), "file", kSeeHelp);
  if (!line.ok()) return line.status();
  const CommandLine& given = *line;
  ImportCommand result;
  if (given.AsksOnly(&result)) return result;
  result.files = given.Texts("file");
  if (result.files.empty()) {
    return Status::Invalid("no FILE given" + std::string(kSeeHelp));
  }
  result.options.name = result.files[0];
  result.output = given.Text("output");
  if (result.output.empty()) {
    return Status::Invalid("no --output given" + std::string(kSeeHelp));
  }
  result.from = given.Text("from");
  if (result.from == "fio" && result.files.size() > 1) {
    return Status::Invalid("fio: one FILE at a time");
  }
  for (const auto& [option, value] :
       {std::pair{"below", &result.options.below},
        std::pair{"cwd", &result.options.folder}}) {
    if (!given.Has(option)) continue;
    *value = given.Text(option);
    if (!value->starts_with('/')) {
      return Status::Invalid("--" + std::string(option) +
                             " is an absolute path");
    }
    if (result.from == "fio") {
      return Status::Invalid("--" + std::string(option) + " is for strace");
    }
  }
  return result;
}

}  // namespace tracefs
