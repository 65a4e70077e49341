#include "tracefs/tools/dump_options.h"

#include <algorithm>
#include <boost/program_options.hpp>
#include <sstream>

#include "tracefs/export/table.h"

namespace tracefs {
namespace {

namespace po = boost::program_options;

constexpr char kSeeHelp[] = " (see tracefs-dump --help)";

std::string FormatNames(std::string_view separator) {
  std::string names;
  for (const ExportFormat& format : ExportFormats()) {
    if (!names.empty()) names += separator;
    names += format.name;
  }
  return names;
}

po::options_description VisibleOptions() {
  po::options_description options("Options");
  options.add_options()                                                     //
      ("format", po::value<std::string>()->value_name("NAME"),              //
       ("output format: " + FormatNames(", ") + "; default text").c_str())  //
      ("filter", po::value<std::string>()->value_name("EXPR"),
       "only operations that match EXPR, in the language of capture filters")  //
      ("follow", "go on as a trace that is still being written grows")  //
      ("header", "print what each trace says of itself instead")        //
      ("stats", "print counts per operation and losses instead")        //
      ("key", po::value<std::vector<std::string>>()->value_name("FILE"),
       "keys for encrypted traces; also env:NAME, keyring:NAME; may be given "
       "several times")                                    //
      ("utc", "text: times in UTC instead of local time")  //
      ("epoch", "text: times in seconds since 1970")       //
      ("help,h", "print this and exit")                    //
      ("version", "print the version and exit");
  return options;
}

}  // namespace

std::string DumpHelp() {
  std::ostringstream out;
  out << "Usage: tracefs-dump [OPTION]... TRACE...\n"
         "Print the operations of traces in order of time. TRACE is a file or "
         "pipe, or -\nfor standard input; several are merged.\n\n"
      << VisibleOptions() << "\nFormats:\n";
  for (const ExportFormat& format : ExportFormats()) {
    std::string name(format.name);
    name.resize(std::max<size_t>(name.size(), 8), ' ');
    out << "  " << name << format.summary << "\n";
  }
  out << "\nExamples:\n"
         "  tracefs-dump trace.log\n"
         "  tracefs-dump --filter 'op = unlink AND errno = 0' trace.log\n"
         "  tracefs-dump --follow --filter 'ext = log' trace.log\n"
         "  tracefs-dump --format jsonl host1.log host2.log | jq .path\n"
         "  tracefs-dump --header --stats trace.log\n"
         "\nExit status: 0 all was read; 1 something is damaged, cut, lost or "
         "no trace;\n2 wrong usage; 3 the system refused. What is wrong with a "
         "trace is on standard\nerror, after the operations.\n";
  return out.str();
}

Result<DumpOptions> ParseDumpOptions(int argc, const char* const* argv) {
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

  DumpOptions result;
  result.help = given.count("help") != 0;
  result.version = given.count("version") != 0;
  if (result.help || result.version) return result;
  result.header = given.count("header") != 0;
  result.stats = given.count("stats") != 0;
  result.follow = given.count("follow") != 0;
  if (given.count("format") != 0) {
    result.format = given["format"].as<std::string>();
  }
  if (FindExportFormat(result.format) == nullptr) {
    return Status::Invalid("--format: there is no \"" + result.format +
                           "\"; there are " + FormatNames(", "));
  }
  if (given.count("filter") != 0) {
    result.filter = given["filter"].as<std::string>();
  }
  const bool utc = given.count("utc") != 0;
  const bool epoch = given.count("epoch") != 0;
  if (utc && epoch) {
    return Status::Invalid("--utc and --epoch exclude each other");
  }
  if ((utc || epoch) && result.format != "text") {
    return Status::Invalid(
        "--utc and --epoch are for --format text; the times of other formats "
        "do not depend on the time zone");
  }
  if (utc) result.time = TimeStyle::kUtc;
  if (epoch) result.time = TimeStyle::kEpoch;
  if (result.header && result.follow) {
    return Status::Invalid("--header and --follow exclude each other");
  }
  if (result.header && !result.stats && !result.filter.empty()) {
    return Status::Invalid(
        "--header prints no operations: --filter needs --stats as well");
  }
  if (given.count("key") != 0) {
    result.keys = given["key"].as<std::vector<std::string>>();
  }
  if (given.count("trace") != 0) {
    result.traces = given["trace"].as<std::vector<std::string>>();
  }
  if (result.traces.empty()) {
    return Status::Invalid("no TRACE given" + std::string(kSeeHelp));
  }
  if (std::count(result.traces.begin(), result.traces.end(), "-") > 1) {
    return Status::Invalid("standard input (-) can be read only once");
  }
  return result;
}

}  // namespace tracefs
