#include "tracefs/tools/verify_options.h"

#include <algorithm>
#include <boost/program_options.hpp>
#include <sstream>

namespace tracefs {
namespace {

namespace po = boost::program_options;

constexpr char kSeeHelp[] = " (see tracefs-verify --help)";

po::options_description VisibleOptions() {
  using Strings = std::vector<std::string>;
  po::options_description options("Options");
  options.add_options()  //
      ("key", po::value<Strings>()->value_name("FILE"),
       "keys: shared secrets, verify secrets, public signing keys, age "
       "identities; also env:NAME, keyring:NAME; may be given several times")  //
      ("anchors", po::value<Strings>()->value_name("FILE"),
       "lines with anchors, as checksum wrote them to a file or syslog; every "
       "trace must agree with them")  //
      ("serial", po::value<std::string>()->value_name("HEX"),
       "the trace must have this serial (32 digits)")  //
      ("chain", po::value<std::string>()->value_name("TEXT"),
       "the output chain, where the preamble is lost or not believed")  //
      ("accept-unsealed",
       "be content with what shows accidents only: crc32c, or no checksum")  //
      ("unfinished",
       "the traces are still being written: no end is no fault")  //
      ("quiet,q", "print only what is not ok")                    //
      ("help,h", "print this and exit")                           //
      ("version", "print the version and exit");
  return options;
}

}  // namespace

std::string VerifyHelp() {
  std::ostringstream out;
  out << "Usage: tracefs-verify [OPTION]... TRACE...\n"
         "Say for each range of blocks whether it is what was written. TRACE "
         "is a file, a\nfolder of them, or - for standard input.\n\n"
      << VisibleOptions()
      << "\nVerdicts:\n"
         "  ok        written by who holds the key, in its place\n"
         "  bad       changed, moved, there twice, from elsewhere, damaged\n"
         "  missing   removed, cut off, or lost before it was written\n"
         "  unsealed  no key covers it: whoever had the file may have written "
         "it\n"
         "\nExamples:\n"
         "  tracefs-verify --key verify.key trace.log\n"
         "  tracefs-verify --key verify.key --anchors /var/log/syslog traces/\n"
         "\nExit status: 0 all is ok; 1 something is not; 2 wrong usage or "
         "keys; 3 the system\nrefused.\n";
  return out.str();
}

Result<VerifyOptions> ParseVerifyOptions(int argc, const char* const* argv) {
  po::options_description options = VisibleOptions();
  options.add_options()("trace", po::value<std::vector<std::string>>());
  po::positional_options_description positional;
  positional.add("trace", -1);
  po::variables_map given;
  try {
    // No guessing: an abbreviation that works today may be ambiguous tomorrow.
    namespace style = po::command_line_style;
    po::store(po::command_line_parser(argc, argv)
                  .options(options)
                  .positional(positional)
                  .style(style::unix_style & ~style::allow_guessing)
                  .run(),
              given);
    po::notify(given);
  } catch (const po::error& error) {
    return Status::Invalid(error.what() + std::string(kSeeHelp));
  }
  const auto strings = [&](const char* name) {
    return given.count(name) == 0 ? std::vector<std::string>()
                                  : given[name].as<std::vector<std::string>>();
  };
  const auto text = [&](const char* name) {
    return given.count(name) == 0 ? std::string()
                                  : given[name].as<std::string>();
  };
  VerifyOptions result;
  result.help = given.count("help") != 0;
  result.version = given.count("version") != 0;
  if (result.help || result.version) return result;
  result.keys = strings("key");
  result.anchors = strings("anchors");
  result.serial = text("serial");
  result.chain = text("chain");
  result.accept_unsealed = given.count("accept-unsealed") != 0;
  result.unfinished = given.count("unfinished") != 0;
  result.quiet = given.count("quiet") != 0;
  result.traces = strings("trace");
  if (result.traces.empty()) {
    return Status::Invalid("no TRACE given" + std::string(kSeeHelp));
  }
  if (std::count(result.traces.begin(), result.traces.end(), "-") > 1) {
    return Status::Invalid("standard input (-) can be read only once");
  }
  return result;
}

}  // namespace tracefs
