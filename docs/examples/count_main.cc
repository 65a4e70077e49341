// tracefs-count: how many operations traces have. See
// docs/man/tracefs-count.1.
#include <unistd.h>

#include <string>

#include "tracefs/command/command_line.h"
#include "tracefs/command/front.h"
#include "tracefs/reader/trace_input.h"
#include "tracefs/text/output_buffer.h"
#include "tracefs/tools/count/main.h"

namespace tracefs {
namespace {

constexpr char kName[] = "tracefs-count";

struct CountOptions {
  HelpWish help;
  bool version = false;
  reader::InputOptions input;
};

CommandOptions Rows() { return {KeyOption(), HelpOption(), VersionOption()}; }

HelpPage Help() {
  return {.command = kName,
          .begin =
              "Usage: tracefs-count [OPTION]... TRACE...\n"
              "Count the operations of traces.\n",
          .rows = Rows(),
          .end =
              "Exit status: 0 counted; 1 something of a trace is damaged or "
              "lost; 2 wrong\nusage; 3 the system refused.\n"};
}

Result<CountOptions> Parse(int argc, const char* const* argv) {
  const Result<CommandLine> given = CommandLine::Parse(
      argc, argv, Rows(), "trace", " (see tracefs-count --help)");
  if (!given.ok()) return given.status();
  return CountOptions{
      .help = given->Help(),
      .version = given->Has("version"),
      .input = {.traces = given->Texts("trace"), .keys = given->Texts("key")}};
}

int Count(const CountOptions& options) {
  const auto input = reader::TraceInput::Open(options.input, {});
  if (!input.ok()) return Finish(kName, input.status());
  uint64_t count = 0;
  (*input)->ForEach([&](format::Record& record, size_t) {
    if (!record.event.before) ++count;  // it comes again with its result
  });
  FdOutput out(STDOUT_FILENO);
  FdOutput err(STDERR_FILENO);
  out.Append(std::to_string(count) + "\n");
  err.Append((*input)->Problems(std::string(kName) + ": "));
  if (Status s = out.Flush(); !s.ok()) return Finish(kName, s);
  static_cast<void>(err.Flush());
  return (*input)->ExitCode();
}

}  // namespace

int CountMain(int argc, char** argv) {
  return RunCommand({kName, &Help}, Parse(argc, argv), Count);
}

}  // namespace tracefs
