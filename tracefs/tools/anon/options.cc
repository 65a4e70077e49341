#include "tracefs/tools/anon/options.h"

#include <algorithm>
#include <boost/program_options.hpp>
#include <sstream>

#include "anonymize/policy.h"
#include "tracefs/command/command_line.h"

namespace tracefs::anonymize {
namespace {

namespace po = boost::program_options;
using Strings = std::vector<std::string>;

constexpr char kSeeHelp[] = " (see tracefs-anon --help)";
constexpr unsigned kMaxThreads = 256;
constexpr size_t kMaxCache = size_t{1} << 26;

po::options_description VisibleOptions() {
  po::options_description options("Options");
  options.add_options()  //
      ("policy", po::value<std::string>()->value_name("POLICY"),
       "what becomes of each field: a profile or a file")  //
      ("keys", po::value<Strings>()->value_name("FILE"),
       "keys of anonymisation: a master secret (tracefs-keygen secret), "
       "derived "
       "keys (tracefs-keygen --derive), age identities; also env:NAME, "
       "keyring:NAME; may be given several times")  //
      ("reveal", po::value<std::string>()->value_name("DOMAIN,..."),
       "undo what was done to these domains, or to 'all'")  //
      ("audit", po::value<std::string>()->value_name("TRACE"),
       "look for leaks in an anonymised trace, and say what risk remains")  //
      ("against", po::value<std::string>()->value_name("ORIGINAL"),
       "--audit: search the trace for every value of the original that the "
       "policy protects")  //
      ("quasi", po::value<std::string>()->value_name("CLASS,..."),
       "--audit: fields that might identify together; default uid,gid,comm")  //
      ("ok", po::value<Strings>()->value_name("WORD"),
       "--audit: finding this is no leak; may be given several times")  //
      ("explain", "print what a policy does to each field, and exit")   //
      ("trace-key", po::value<Strings>()->value_name("FILE"),
       "keys for encrypted traces, as tracefs-dump --key")  //
      ("threads", po::value<unsigned>()->value_name("N"),
       "default: one for each processor; the output is the same")  //
      ("cache", po::value<size_t>()->value_name("N"),
       "values remembered in each domain, 0 for none; the output is the "
       "same")                                                            //
      ("salvage", "leave out what is damaged instead of stopping there")  //
      ("quiet,q", "no progress, no summary")                              //
      ("help,h", "print this and exit")                                   //
      ("version", "print the version and exit");
  return options;
}

}  // namespace

std::string AnonHelp() {
  std::ostringstream out;
  out << "Usage: tracefs-anon --policy POLICY [--keys FILE] IN... OUT\n"
         "       tracefs-anon --reveal DOMAIN,... --keys FILE IN... OUT\n"
         "       tracefs-anon --audit TRACE [--against ORIGINAL [--policy "
         "POLICY]]\n"
         "       tracefs-anon --explain --policy POLICY [IN]\n"
         "Write traces anew so that they can be shared. IN is a file or pipe, "
         "or "
         "- for\nstandard input; OUT is a new file, - for standard output, or "
         "a folder, which\nseveral inputs need. Inputs are never changed.\n\n"
      << VisibleOptions() << "\nProfiles:\n";
  for (const Profile& profile : Profiles()) {
    // The first line says what it is for.
    std::string line(profile.text.substr(0, profile.text.find('\n')));
    out << "  " << line.substr(std::min<size_t>(2, line.size())) << "\n";
  }
  out << "\nExamples:\n"
         "  tracefs-keygen secret anon.key\n"
         "  tracefs-anon --policy research --keys anon.key my.trace out.trace\n"
         "  tracefs-anon --audit out.trace --against my.trace --policy "
         "research\n"
         "  tracefs-keygen --derive uid --key anon.key uid.key\n"
         "  tracefs-anon --reveal uid --keys uid.key out.trace users.trace\n"
         "\nExit status: 0 done; 1 the trace is damaged, or the audit found a "
         "leak; 2 wrong\nusage, policy or key; 3 the system refused.\n";
  return out.str();
}

Result<AnonOptions> ParseAnonOptions(int argc, const char* const* argv) {
  const Result<CommandLine> line =
      CommandLine::Parse(argc, argv, VisibleOptions(), "trace", kSeeHelp);
  if (!line.ok()) return line.status();
  const CommandLine& given = *line;
  AnonOptions result;
  result.help = given.Has("help");
  result.version = given.Has("version");
  if (result.help || result.version) return result;
  const int modes = (given.Has("reveal") ? 1 : 0) +
                    (given.Has("audit") ? 1 : 0) +
                    (given.Has("explain") ? 1 : 0);
  if (modes > 1) {
    return Status::Invalid(
        "--reveal, --audit and --explain exclude each other");
  }
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
  if (given.Has("threads")) {
    result.threads = given.As<unsigned>("threads");
    if (result.threads == 0 || result.threads > kMaxThreads) {
      return Status::Invalid("--threads takes 1 to " +
                             std::to_string(kMaxThreads));
    }
  }
  if (given.Has("cache")) {
    result.cache_entries = given.As<size_t>("cache");
    if (result.cache_entries > kMaxCache) {
      return Status::Invalid("--cache takes at most " +
                             std::to_string(kMaxCache));
    }
  }
  Strings traces = given.Texts("trace");
  if (!given.Has("audit") &&
      (given.Has("against") || given.Has("quasi") || given.Has("ok"))) {
    return Status::Invalid("--against, --quasi and --ok belong to --audit");
  }
  if (given.Has("audit")) {
    result.mode = AnonOptions::Mode::kAudit;
    if (!traces.empty() || given.Has("keys")) {
      return Status::Invalid(
          "--audit takes a trace and, with --against, its original, and no "
          "keys" +
          std::string(kSeeHelp));
    }
    return result;
  }
  if (given.Has("explain")) {
    result.mode = AnonOptions::Mode::kExplain;
    if (!given.Has("policy")) {
      return Status::Invalid("--explain needs --policy");
    }
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
    if (result.keys.empty()) return Status::Invalid("--reveal needs --keys");
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
