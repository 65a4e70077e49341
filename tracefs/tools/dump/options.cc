#include "tracefs/tools/dump/options.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tracefs/base/units.h"
#include "tracefs/command/command_line.h"
#include "tracefs/export/table.h"
#include "tracefs/tools/dump/extract.h"

namespace tracefs {
namespace {

constexpr char kSeeHelp[] = " (see tracefs-dump --help)";

CommandOptions VisibleOptions() {
  CommandOptions options = {
      {.name = "format",
       .value = "NAME",
       .help = "output format: " + ExportFormatNames() + "; default text",
       .words = ExportFormatNames()},
      OutputOption(),
      {"columns", "A,B",
       "of tables: which columns, in which order; all: every one"},
      {"set", "NAME=VALUE",
       "a choice of the format, see below; may be given several times",
       /*repeated=*/true},
      {"safe-numbers", "",
       "JSON: whole numbers beyond 2^53 as strings, for readers that take "
       "every number for a double"},
      {"from", "TIME",
       "only operations that began at TIME or later: 2026-01-02T14:03:05.25, "
       "14:03:05, +5s after the start of the trace, -5s before its end, 25%, "
       "@NANOSECONDS since 1970"},
      ToOption(),
      {.name = "overlapping",
       .help = "with --from: also operations that had not ended then",
       .needs = "from"},
      {"filter", "EXPR",
       "only operations that match EXPR, in the language of capture filters"},
      {.name = "browse",
       .help =
           "show them on a screen to sort, search and open (? shows the keys)",
       .excludes =
           "format output stats header extract follow by every hist plot sort "
           "top values columns limit set time-format safe-numbers"},
      {.name = "color",
       .value = "WHEN",
       .help = "--browse: auto, always or never; default auto",
       .needs = "browse",
       .words = WordsOf(screen::kColourWishes)},
      {"follow,f", "", "go on as a trace that is still being written grows"},
      WaitOption(),
      {.name = "header",
       .help = "print what each trace says of itself instead",
       .excludes = "follow"},
      {.name = "extract",
       .value = "WHAT",
       .help =
           "print as it was recorded what the header of each trace embeds: " +
           ExtractNames() +
           " (those that tracefs-run --embed kept: put into the folder "
           "--output, or listed)",
       .excludes = "header stats follow filter",
       .words = ExtractNames()},
      {"stats", "", "print counts per operation and losses instead"},
      {.name = "check-replayable",
       .help = "say what the traces lack to be replayed instead; as text, or "
               "JSON with --format jsonl",
       .excludes = "header stats follow filter extract browse from to output "
                   "by every hist plot limit wait"},
      KeyOption(),
      {"utc", "",
       "times, also those of --from and --to, in UTC instead of local time"},
      {.name = "time-format",
       .value = "FORM",
       .help = "text, csv: clock (a line marks each new day), date, iso, "
               "epoch, ns, relative (to the first one shown) or delta (to the "
               "one before)",
       .words = WordsOf(kTimeForms)},
      HelpOption(),
      VersionOption()};
  AddQueryOptions(&options);
  AddPagerOptions(&options);
  return options;
}

Status ReadForm(const CommandLine& given, DumpOptions* result) {
  if (!given.Has("time-format")) return {};
  if (result->format != "text" && result->format != "csv") {
    return Status::Invalid(
        "--time-format is for --format text and csv; the times of other "
        "formats are as these have them");
  }
  given.Take("time-format", kTimeForms, &result->exported.form);
  result->exported.form_given = true;
  return {};
}

Status ReadTimes(const CommandLine& given, DumpOptions* result) {
  const bool utc = given.Has("utc");
  if (Status s = ReadForm(given, result); !s.ok()) return s;
  const TimeForm form = result->exported.form;
  const bool window = given.Has("from") || given.Has("to");
  if (utc && form == TimeForm::kEpoch) {
    return Status::Invalid("--utc and --time-format epoch exclude each other");
  }
  if (utc && !window && result->format != "text" &&
      !result->exported.form_given) {
    return Status::Invalid(
        "--utc is for --format text and for --from and --to; the times of "
        "other formats do not depend on the time zone");
  }
  if (utc) result->time = TimeStyle::kUtc;
  if (form == TimeForm::kEpoch) result->time = TimeStyle::kEpoch;
  result->exported.time = result->time;
  for (const auto& [name, spec] :
       {std::pair{"from", &result->from}, std::pair{"to", &result->to}}) {
    if (Status s = given.TakeTime(name, utc, spec); !s.ok()) return s;
  }
  result->overlapping = given.Has("overlapping");
  return {};
}

Status ReadBrowse(const CommandLine& given, DumpOptions* result) {
  result->browse = given.Has("browse");
  given.Take("color", screen::kColourWishes, &result->colour);
  if (!result->browse) return {};
  const std::vector<std::string> traces = given.Texts("trace");
  if (std::count(traces.begin(), traces.end(), "-") != 0) {
    return Status::Invalid(
        "--browse reads a trace several times: standard input will not do");
  }
  return {};
}

Status ReadOutput(const CommandLine& given, DumpOptions* result) {
  const ExportFormat& format = *FindExportFormat(result->format);
  result->output = given.Text("output");
  if (given.Has("output") && result->output.empty()) {
    return Status::Invalid("--output: name a file");
  }
  if (result->output == "-") result->output.clear();
  for (const std::string& choice : given.Texts("set")) {
    if (Status s = AddChoice(format, choice, &result->exported); !s.ok()) {
      return s;
    }
  }
  const ExportKind kind = KindOf(format, result->exported);
  const bool folder = kind == ExportKind::kFolder;
  if (result->output.empty() && (folder || kind == ExportKind::kFile)) {
    return Status::Invalid("--format " + result->format + " makes a " +
                           (folder ? "folder" : "file") +
                           ": name it with --output");
  }
  if (format.kind != ExportKind::kLines) {
    if (!result->query &&
        (result->header || result->stats || !result->extract.empty())) {
      return Status::Invalid(
          "--header, --stats and --extract are printed as --format text or "
          "jsonl");
    }
    if (result->follow && format.kind != ExportKind::kText) {
      return Status::Invalid("--follow: --format " + result->format +
                             " is written when the trace has ended; use "
                             "--wait");
    }
  }
  if (given.Has("columns") && !result->query) {
    if (!format.Has(kHasColumns)) {
      return Status::Invalid("--columns: --format " + result->format +
                             " has none to choose");
    }
    auto columns = ParseColumns(given.Text("columns"));
    if (!columns.ok()) return columns.status();
    result->exported.columns = *std::move(columns);
  }
  result->safe_numbers = given.Has("safe-numbers");
  if (result->safe_numbers && !format.Has(kIsJson)) {
    return Status::Invalid("--safe-numbers: --format " + result->format +
                           " is not JSON");
  }
  return {};
}

}  // namespace

HelpPage DumpHelp() {
  std::string formats = "\nFormats:\n";
  for (const ExportFormat& format : ExportFormats()) {
    std::string name(format.name);
    name.resize(std::max<size_t>(name.size(), 11), ' ');
    formats += "  " + name + std::string(format.summary) + "\n";
    for (const ExportChoice& choice : format.choices) {
      formats += "               --set " + std::string(choice.name) + "=" +
                 std::string(choice.values) + ": " + std::string(choice.help) +
                 "\n";
    }
  }
  return {
      .command = "tracefs-dump",
      .begin =
          "Usage: tracefs-dump [OPTION]... TRACE...\n"
          "Print the operations of traces in order of time. TRACE is a "
          "file or pipe, or -\nfor standard input; several are merged.\n",
      .rows = VisibleOptions(),
      .common =
          "format output filter from to by sort top follow browse header "
          "stats key help",
      .details = std::move(formats),
      .details_of = "what each format is",
      .examples = {"tracefs-dump --filter 'op = unlink AND errno = 0' "
                   "trace.log",
                   "tracefs-dump --by op --sort time --top 5 trace.log",
                   "tracefs-dump --format jsonl host1.log host2.log | jq .path",
                   "tracefs-dump --follow --filter 'ext = log' trace.log",
                   "tracefs-dump --header --stats trace.log",
                   "tracefs-dump --extract config trace.log > again.conf",
                   "tracefs-dump --from 14:03 --to 14:04:30 trace.log",
                   "tracefs-dump --filter 'errno != 0' --by errno,cname "
                   "trace.log",
                   "tracefs-dump --filter 'op = read' --hist latency trace.log",
                   "tracefs-dump --format csv --output operations.csv "
                   "trace.log"},
      .end =
          "Exit status: 0 all was read; 1 something is damaged, cut, lost or "
          "no trace;\n2 wrong usage; 3 the system refused. What is wrong "
          "with a trace is on standard\nerror, after the operations.\n"};
}

Result<DumpOptions> ParseDumpOptions(int argc, const char* const* argv) {
  const Result<CommandLine> line =
      CommandLine::Parse(argc, argv, VisibleOptions(), "trace", kSeeHelp);
  if (!line.ok()) return line.status();
  const CommandLine& given = *line;

  DumpOptions result;
  if (given.AsksOnly(&result)) return result;
  result.header = given.Has("header");
  result.stats = given.Has("stats");
  result.extract = given.Text("extract");
  result.check_replayable = given.Has("check-replayable");
  if (result.check_replayable) {
    const std::string format = given.Text("format");
    if (!format.empty() && format != "text" && format != "jsonl") {
      return Status::Invalid(
          "--check-replayable is said as --format text or jsonl");
    }
  }
  result.follow = given.Has("follow");
  if (Status s = ReadBrowse(given, &result); !s.ok()) return s;
  result.wait = given.Has("wait");
  if (given.Has("format")) {
    result.format = given.Text("format");
  }
  result.filter = given.Text("filter");
  auto query = ReadQueryOptions(given);
  if (!query.ok()) return query.status();
  result.query = *std::move(query);
  if (!result.query) {
    if (Status s = given.Take("limit", 1, UINT64_MAX, &result.limit); !s.ok()) {
      return s;
    }
  }
  if (Status s = ReadTimes(given, &result); !s.ok()) return s;
  if (Status s = ReadOutput(given, &result); !s.ok()) return s;
  if (result.wait && result.follow) {
    return Status::Invalid(
        "--wait and --follow exclude each other: the one begins when the trace "
        "has ended, the other goes along with it");
  }
  if (result.header && !result.stats && !result.filter.empty()) {
    return Status::Invalid(
        "--header prints no operations: --filter needs --stats as well");
  }
  result.pager = ReadPagerOptions(given);
  // A pager waits for the end, and a screen is no text.
  result.pager.never |= result.follow || result.browse;
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
