#include "tracefs/tools/anon/options.h"

#include <algorithm>

#include "anonymize/policy.h"
#include "tracefs/base/units.h"
#include "tracefs/command/command_line.h"

namespace tracefs::anonymize {
namespace {

using Strings = std::vector<std::string>;

constexpr char kSeeHelp[] = " (see tracefs-anon --help)";
constexpr unsigned kMaxThreads = 256;
constexpr size_t kMaxCache = size_t{1} << 26;

std::string ProfileNames() {
  std::string names;
  for (const Profile& profile : Profiles()) {
    names += std::string(profile.name) + ' ';
  }
  return names;
}

CommandOptions VisibleOptions() {
  return {
      {.name = "policy",
       .value = "POLICY",
       .help = "what becomes of each field: a profile or a file",
       .words = ProfileNames(),
       .open = true},
      {"keys", "FILE",
       "keys of anonymisation: a master secret (tracefs-keygen secret), "
       "derived keys (tracefs-keygen --derive), age identities; also env:NAME, "
       "keyring:NAME; may be given several times",
       /*repeated=*/true},
      {.name = "reveal",
       .value = "DOMAIN,...",
       .help = "undo what was done to these domains, or to 'all'",
       .excludes = "audit explain",
       .needs = "keys"},
      {.name = "audit",
       .value = "TRACE",
       .help =
           "look for leaks in an anonymised trace, and say what risk remains",
       .excludes = "explain keys"},
      {.name = "against",
       .value = "ORIGINAL",
       .help = "--audit: search the trace for every value of the original that "
               "the policy protects",
       .needs = "audit"},
      {.name = "quasi",
       .value = "CLASS,...",
       .help =
           "--audit: fields that might identify together; default uid,gid,comm",
       .needs = "audit"},
      {.name = "ok",
       .value = "WORD",
       .help = "--audit: finding this is no leak; may be given several times",
       .repeated = true,
       .needs = "audit"},
      {.name = "explain",
       .help = "print what a policy does to each field, and exit",
       .needs = "policy"},
      {"trace-key", "FILE", "keys for encrypted traces, as tracefs-dump --key",
       /*repeated=*/true},
      {"threads", "N",
       "default: one for each processor; the output is the same"},
      {"cache", "N",
       "values remembered in each domain, 0 for none; the output is the same"},
      {"salvage", "", "leave out what is damaged instead of stopping there"},
      {"quiet,q", "", "no progress, no summary"},
      HelpOption(),
      VersionOption()};
}

}  // namespace

HelpPage AnonHelp() {
  std::string profiles = "\nProfiles:\n";
  for (const Profile& profile : Profiles()) {
    // The first line says what it is for.
    std::string line(profile.text.substr(0, profile.text.find('\n')));
    profiles += "  " + line.substr(std::min<size_t>(2, line.size())) + "\n";
  }
  return {
      .command = "tracefs-anon",
      .begin =
          "Usage: tracefs-anon --policy POLICY [--keys FILE] IN... OUT\n"
          "       tracefs-anon --reveal DOMAIN,... --keys FILE IN... OUT\n"
          "       tracefs-anon --audit TRACE [--against ORIGINAL [--policy "
          "POLICY]]\n"
          "       tracefs-anon --explain --policy POLICY [IN]\n"
          "Rewrite traces so that they can be shared. IN is a file or pipe, or "
          "- for\nstandard input; OUT is a new file, - for standard output, or "
          "a folder, which\nseveral inputs need. Inputs are never changed.\n",
      .rows = VisibleOptions(),
      .common = "policy keys reveal audit against explain help",
      .list = std::move(profiles),
      .examples = {"tracefs-keygen secret anon.key",
                   "tracefs-anon --policy research --keys anon.key my.trace "
                   "out.trace",
                   "tracefs-anon --audit out.trace --against my.trace --policy "
                   "research",
                   "tracefs-keygen --derive uid --key anon.key uid.key",
                   "tracefs-anon --reveal uid --keys uid.key out.trace "
                   "users.trace"},
      .end =
          "Exit status: 0 done; 1 the trace is damaged, or the audit found a "
          "leak; 2 wrong\nusage, policy or key; 3 the system refused.\n"};
}

Result<AnonOptions> ParseAnonOptions(int argc, const char* const* argv) {
  const Result<CommandLine> line =
      CommandLine::Parse(argc, argv, VisibleOptions(), "trace", kSeeHelp);
  if (!line.ok()) return line.status();
  const CommandLine& given = *line;
  AnonOptions result;
  if (given.AsksOnly(&result)) return result;
  result.policy = given.Text("policy");
  result.keys = given.Texts("keys");
  result.trace_keys = given.Texts("trace-key");
  result.reveal = SplitAtCommas({given.Text("reveal")});
  result.audit = given.Text("audit");
  result.against = given.Text("against");
  result.quasi = given.Has("quasi") ? SplitAtCommas({given.Text("quasi")})
                                    : Strings{"uid", "gid", "comm"};
  result.ok_words = given.Texts("ok");
  result.salvage = given.Has("salvage");
  result.quiet = given.Has("quiet");
  for (Status s : {given.Take("threads", 1, kMaxThreads, &result.threads),
                   given.Take("cache", 0, kMaxCache, &result.cache_entries)}) {
    if (!s.ok()) return s;
  }
  Strings traces = given.Texts("trace");
  if (given.Has("audit")) {
    result.mode = AnonOptions::Mode::kAudit;
    if (!traces.empty()) {
      return Status::Invalid(
          "--audit takes a trace and, with --against, its original" +
          std::string(kSeeHelp));
    }
    return result;
  }
  if (given.Has("explain")) {
    result.mode = AnonOptions::Mode::kExplain;
    if (traces.size() > 1) {
      return Status::Invalid("--explain takes one trace, or none");
    }
    result.inputs = traces;
    return result;
  }
  if (given.Has("reveal")) {
    result.mode = AnonOptions::Mode::kReveal;
    if (given.Has("policy")) {
      return Status::Invalid(
          "--reveal needs no --policy: the trace says what was done to it");
    }
    if (result.reveal.empty()) {
      return Status::Invalid("--reveal needs the names of domains, or 'all'");
    }
  } else if (!given.Has("policy")) {
    return Status::Invalid("--policy says what becomes of the trace" +
                           std::string(kSeeHelp));
  }
  if (traces.size() < 2) {
    return Status::Invalid("an input and an output are needed" +
                           std::string(kSeeHelp));
  }
  if (std::count(traces.begin(), traces.end(), "") != 0) {
    return Status::Invalid("an input or the output has an empty name");
  }
  result.output = traces.back();
  traces.pop_back();
  result.inputs = traces;
  if (std::count(traces.begin(), traces.end(), "-") > 1) {
    return Status::Invalid("standard input (-) can be read only once");
  }
  return result;
}

}  // namespace tracefs::anonymize
