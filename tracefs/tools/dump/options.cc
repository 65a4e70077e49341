#include "tracefs/tools/dump/options.h"

#include <algorithm>
#include <boost/program_options.hpp>
#include <sstream>

#include "tracefs/command/command_line.h"
#include "tracefs/export/table.h"
#include "tracefs/tools/dump/extract.h"

namespace tracefs {
namespace {

namespace po = boost::program_options;

constexpr char kSeeHelp[] = " (see tracefs-dump --help)";

po::options_description VisibleOptions() {
  po::options_description options("Options");
  options.add_options()                                                       //
      ("format", po::value<std::string>()->value_name("NAME"),                //
       ("output format: " + ExportFormatNames() + "; default text").c_str())  //
      ("filter", po::value<std::string>()->value_name("EXPR"),
       "only operations that match EXPR, in the language of capture filters")  //
      ("follow", "go on as a trace that is still being written grows")  //
      ("wait", "wait first until nobody writes the traces any more")    //
      ("header", "print what each trace says of itself instead")        //
      ("extract", po::value<std::string>()->value_name("WHAT"),
       ("print as it was recorded what the header of each trace embeds: " +
        ExtractNames())
           .c_str())                                              //
      ("stats", "print counts per operation and losses instead")  //
      ("key", po::value<std::vector<std::string>>()->value_name("FILE"),
       "keys for encrypted traces; also env:NAME, keyring:NAME; may be given "
       "several times")                                    //
      ("utc", "text: times in UTC instead of local time")  //
      ("epoch", "text: times in seconds since 1970")       //
      ("date",
       "text: the date before each time; else a line tells where the "
       "day changes")                    //
      ("help,h", "print this and exit")  //
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
         "  tracefs-dump --extract config trace.log > again.conf\n"
         "\nExit status: 0 all was read; 1 something is damaged, cut, lost or "
         "no trace;\n2 wrong usage; 3 the system refused. What is wrong with a "
         "trace is on standard\nerror, after the operations.\n";
  return out.str();
}

Result<DumpOptions> ParseDumpOptions(int argc, const char* const* argv) {
  const Result<CommandLine> line =
      CommandLine::Parse(argc, argv, VisibleOptions(), "trace", kSeeHelp);
  if (!line.ok()) return line.status();
  const CommandLine& given = *line;

  DumpOptions result;
  result.help = given.Has("help");
  result.version = given.Has("version");
  if (result.help || result.version) return result;
  result.header = given.Has("header");
  result.stats = given.Has("stats");
  result.extract = given.Text("extract");
  if (given.Has("extract")) {
    if (!IsExtract(result.extract)) {
      return Status::Invalid("--extract: there is no \"" + result.extract +
                             "\"; there are " + ExtractNames());
    }
    for (const char* other : {"header", "stats", "follow", "filter"}) {
      if (given.Has(other)) {
        return Status::Invalid("--extract and --" + std::string(other) +
                               " exclude each other");
      }
    }
  }
  result.follow = given.Has("follow");
  result.wait = given.Has("wait");
  if (given.Has("format")) {
    result.format = given.Text("format");
  }
  if (FindExportFormat(result.format) == nullptr) {
    return Status::Invalid("--format: there is no \"" + result.format +
                           "\"; there are " + ExportFormatNames());
  }
  result.filter = given.Text("filter");
  const bool utc = given.Has("utc");
  const bool epoch = given.Has("epoch");
  if (utc && epoch) {
    return Status::Invalid("--utc and --epoch exclude each other");
  }
  if ((utc || epoch) && result.format != "text") {
    return Status::Invalid(
        "--utc and --epoch are for --format text; the times of other formats "
        "do not depend on the time zone");
  }
  result.date = given.Has("date");
  if (result.date && (epoch || result.format != "text")) {
    return Status::Invalid("--date is for --format text, and not with --epoch");
  }
  if (utc) result.time = TimeStyle::kUtc;
  if (epoch) result.time = TimeStyle::kEpoch;
  if (result.header && result.follow) {
    return Status::Invalid("--header and --follow exclude each other");
  }
  if (result.wait && result.follow) {
    return Status::Invalid(
        "--wait and --follow exclude each other: the one begins when the trace "
        "has ended, the other goes along with it");
  }
  if (result.header && !result.stats && !result.filter.empty()) {
    return Status::Invalid(
        "--header prints no operations: --filter needs --stats as well");
  }
  result.keys = given.Texts("key");
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
