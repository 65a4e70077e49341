#include "tracefs/tools/verify/options.h"

#include <algorithm>

#include "tracefs/command/command_line.h"

namespace tracefs {
namespace {

constexpr char kSeeHelp[] = " (see tracefs-verify --help)";

CommandOptions VisibleOptions() {
  return {
      {"key", "FILE",
       "keys: shared secrets, verify secrets, public signing keys, age "
       "identities; also env:NAME, keyring:NAME; may be given several times",
       /*repeated=*/true},
      {"anchors", "FILE",
       "lines with anchors, as checksum wrote them to a file or syslog; every "
       "trace must agree with them",
       /*repeated=*/true},
      {"serial", "HEX", "the trace must have this serial (32 digits)"},
      {"chain", "TEXT",
       "the output chain, where the preamble is lost or not believed"},
      {"accept-unsealed", "",
       "where keys or anchors are given: do not ask that every trace be "
       "sealed"},
      {"accept-losses", "",
       "what the tracer could not record, and says so, is no fault"},
      {"unfinished", "",
       "the traces are still being written: no end is no fault"},
      WaitOption(),
      {"quiet,q", "", "print only what is not ok"},
      HelpOption(),
      VersionOption()};
}

}  // namespace

HelpPage VerifyHelp() {
  return {
      .command = "tracefs-verify",
      .begin =
          "Usage: tracefs-verify [OPTION]... TRACE...\n"
          "Say for each range of blocks whether it is what was written. "
          "TRACE is a file, a\nfolder of them, or - for standard input.\n",
      .rows = VisibleOptions(),
      .list =
          "\nVerdicts:\n"
          "  ok        written by a holder of the key, in its place\n"
          "  bad       changed, moved, there twice, from elsewhere, "
          "damaged\n"
          "  missing   removed, cut off, or lost before it was written, also "
          "what the\n            trace itself says was not recorded\n"
          "  unsealed  undamaged, but no key covers it: anyone who had the "
          "file may\n"
          "            have written it. A fault only if keys or anchors are "
          "given\n",
      .examples = {"tracefs-verify my.trace",
                   "tracefs-verify --key verify.key trace.log",
                   "tracefs-verify --key verify.key --anchors /var/log/syslog "
                   "traces/"},
      .end =
          "Exit status: 0 all is ok, or undamaged where no keys are given; "
          "1 something is\nnot; 2 wrong usage or keys; 3 the system "
          "refused.\n"};
}

Result<VerifyOptions> ParseVerifyOptions(int argc, const char* const* argv) {
  const Result<CommandLine> line =
      CommandLine::Parse(argc, argv, VisibleOptions(), "trace", kSeeHelp);
  if (!line.ok()) return line.status();
  const CommandLine& given = *line;
  VerifyOptions result;
  if (given.AsksOnly(&result)) return result;
  result.keys = given.Texts("key");
  result.anchors = given.Texts("anchors");
  result.serial = given.Text("serial");
  result.chain = given.Text("chain");
  result.accept_unsealed = given.Has("accept-unsealed");
  result.accept_losses = given.Has("accept-losses");
  result.unfinished = given.Has("unfinished");
  result.wait = given.Has("wait");
  result.quiet = given.Has("quiet");
  result.traces = given.Texts("trace");
  if (result.traces.empty()) {
    return Status::Invalid("no TRACE given" + std::string(kSeeHelp));
  }
  if (std::count(result.traces.begin(), result.traces.end(), "-") > 1) {
    return Status::Invalid("standard input (-) can be read only once");
  }
  return result;
}

}  // namespace tracefs
