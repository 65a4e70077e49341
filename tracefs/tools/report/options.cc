#include "tracefs/tools/report/options.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "tracefs/base/join.h"
#include "tracefs/base/printable.h"
#include "tracefs/base/spelling.h"
#include "tracefs/base/text_cursor.h"
#include "tracefs/base/units.h"
#include "tracefs/command/command_line.h"
#include "tracefs/text/cell_width.h"
#include "tracefs/tools/report/rows.h"

namespace tracefs {
namespace {

using Strings = std::vector<std::string>;

constexpr char kSeeHelp[] = " (see tracefs-report --help)";

// The formats of all questions together; each question has some of them.
std::string FormatNames() {
  std::set<std::string_view> formats;
  for (const ReportRow& row : ReportRows()) {
    formats.insert(row.formats.begin(), row.formats.end());
  }
  std::string names;
  for (const std::string_view format : formats) {
    names += std::string(format) + ' ';
  }
  return names;
}

CommandOptions VisibleOptions() {
  CommandOptions options = {
      {.name = "format",
       .value = "NAME",
       .help = "how the answer is written; see below",
       .words = FormatNames(),
       .open = true},
      OutputOption(),
      {"filter", "EXPR", "only operations that match EXPR, as of tracefs-dump"},
      {"from", "TIME",
       "only operations that began at TIME or later, as of tracefs-dump: "
       "14:03:05, +5s, -5s, 25%"},
      ToOption(),
      {"by", "KEYS",
       "diff: what is compared, as of tracefs-dump --by; default: op"},
      {"sort", "COLUMN",
       "tables: by that column, largest first; -COLUMN: smallest first"},
      {"top", "N", "tables: N rows, and the others as one; all: all rows"},
      {"columns", "A,B", "tables: which columns, in which order"},
      {"panel", "NAME", "page as svg or png: a picture of that panel"},
      {"title", "TEXT",
       "page: its title; default: the command or directory traced"},
      {"print", "", "print the query behind QUESTION instead of answering"},
      {"query", "FILE",
       "answer the query in FILE, as --print shows them, in place of a "
       "QUESTION"},
      {.name = "sql",
       .help = "print QUESTION as SQL over Parquet files by host and day "
               "instead; TRACE, if given, is the folder that tracefs-dump "
               "--format parquet --set partition=yes made",
       .excludes = "print columns format from to utc wait key"},
      {"raw", "",
       "text: exact figures in place of 1.04 MB and 126 µs; csv: texts as "
       "they are, also those that a spreadsheet would take for a formula"},
      {"utc", "",
       "times without a zone, of --from and --to, are UTC instead of local"},
      WaitOption(),
      KeyOption(),
      HelpOption(),
      VersionOption()};
  AddPagerOptions(&options);
  return options;
}

bool IsThere(const std::string& word) {
  std::error_code ignored;
  return word == "-" || std::filesystem::exists(word, ignored);
}

Status NoSuchRow(const std::string& word) {
  std::vector<std::string_view> names;
  std::string list;
  for (const ReportRow& row : ReportRows()) {
    names.push_back(row.name);
    list += " " + std::string(row.name);
  }
  return Status::Invalid("there is no question or trace " + Quoted(word) +
                         DidYouMean(word, names) + " (questions:" + list + ")");
}

size_t CountWords(std::string_view words) {
  return words.empty()
             ? 0
             : static_cast<size_t>(1 + std::ranges::count(words, ' '));
}

// QUESTION goes to the front if it stands after traces, with its words after
// it. A file there is no question, whatever its name.
void MoveQuestionToFront(Strings* words) {
  const auto question = std::ranges::find_if(*words, [](const auto& word) {
    return !IsThere(word) && FindReportRow(word) != nullptr;
  });
  std::rotate(words->begin(), question, words->end());
}

// Splits QUESTION, its words and TRACEs.
Status ReadWords(const CommandLine& given, ReportOptions* result) {
  Strings words = given.Texts("words");
  if (!given.Has("query") && !words.empty() && IsThere(words[0]) &&
      FindReportRow(words[0]) == nullptr) {
    MoveQuestionToFront(&words);
  }
  if (given.Has("query")) {
    result->query = given.Text("query");
    result->row = QueryFileRow();
  } else if (!words.empty() && FindReportRow(words[0]) != nullptr) {
    result->row = FindReportRow(words[0]);
    words.erase(words.begin());
  } else {
    const bool makes = given.Has("output") || given.Has("format");
    if (words.empty() && !makes) {
      return Status::Invalid("no TRACE given" + std::string(kSeeHelp));
    }
    if (!makes && !IsThere(words[0])) return NoSuchRow(words[0]);
    result->row = makes ? DefaultReportRow() : FindReportRow("summary");
  }
  const ReportRow& row = *result->row;
  const size_t count = CountWords(row.words);
  const bool reads = !result->print && !result->sql;
  if (!result->print &&
      words.size() < count + (row.compares || !reads ? 0 : 1)) {
    const std::string name(row.name);
    return Status::Invalid(
        count == 0
            ? name + " needs a TRACE" + kSeeHelp
            : name + " needs " + std::string(row.words) +
                  (row.compares || !reads ? "" : " and a TRACE") +
                  ": tracefs-report " + name + ' ' + std::string(row.words) +
                  (row.compares || !reads ? "" : " TRACE"));
  }
  if (result->print) return {};
  // A word that is no file stands behind the traces: it can only be the
  // question's.
  if (count == 1 && reads && IsThere(words.front()) && !IsThere(words.back())) {
    std::rotate(words.begin(), words.end() - 1, words.end());
  }
  const auto behind = words.begin() + static_cast<ptrdiff_t>(count);
  result->words.assign(words.begin(), behind);
  result->input.traces.assign(behind, words.end());
  if (result->sql && result->input.traces.size() > 1) {
    return Status::Invalid("--sql takes one folder at most");
  }
  if (std::ranges::count(result->input.traces, "-") > 1) {
    return Status::Invalid("standard input (-) can be read only once");
  }
  return {};
}

Status ReadFormat(const CommandLine& given, ReportOptions* result) {
  result->format = given.Text("format");
  const ReportRow& row = *result->row;
  if (std::ranges::find(row.formats, result->format) != row.formats.end()) {
    return {};
  }
  if (!given.Has("format")) {
    // A name that says what it is is not for text.
    const bool page =
        result->output.ends_with(".html") &&
        std::ranges::find(row.formats, "html") != row.formats.end();
    result->format = page ? "html" : row.formats.front();
    return {};
  }
  return Status::Invalid("--format: " + std::string(row.name) + " knows " +
                         JoinWords(row.formats, ", ") + ", not " +
                         Quoted(result->format) +
                         DidYouMean(result->format, row.formats));
}

Status ReadTable(const CommandLine& given, ReportOptions* result) {
  for (const char* const option :
       {"sort", "top", "columns", "print", "raw", "sql"}) {
    if (given.Has(option) && result->row->query.empty() &&
        result->query.empty()) {
      return Status::Invalid("--" + std::string(option) +
                             " is for questions, "
                             "not for " +
                             std::string(result->row->name));
    }
  }
  for (const char* const option : {"panel", "title"}) {
    if (given.Has(option) && result->row != DefaultReportRow()) {
      return Status::Invalid("--" + std::string(option) +
                             " is for the page, not for questions");
    }
  }
  if (given.Has("by") && !result->row->compares) {
    return Status::Invalid(
        "--by is for diff; what else is grouped by is in the query: see "
        "--print, or tracefs-dump --by");
  }
  result->by = given.Text("by");
  result->panel = given.Text("panel");
  result->title = given.Text("title");
  result->sort = given.Text("sort");
  if (Status s = given.TakeRows("top", &result->top); !s.ok()) return s;
  if (given.Has("columns")) {
    result->columns = SplitAtCommas({given.Text("columns")});
  }
  if (given.Has("raw")) {
    if (result->format != "csv" && result->format != "text") {
      return Status::Invalid("--raw is for --format text and csv; " +
                             result->format + " has exact figures");
    }
    result->table_style = {.figures = query::Figures::kRaw,
                           .csv_reader = CsvReader::kProgram};
  }
  result->table_style.utf8 = HasUtf8();
  if (result->output.empty()) result->table_style.columns = TerminalColumns();
  return {};
}

Status ReadInput(const CommandLine& given, ReportOptions* result) {
  reader::InputOptions& input = result->input;
  input.filter = given.Text("filter");
  input.keys = given.Texts("key");
  input.utc = given.Has("utc");
  result->from = given.Text("from");
  result->to = given.Text("to");
  for (const auto& [name, spec] :
       {std::pair{"from", &input.from}, std::pair{"to", &input.to}}) {
    if (Status s = given.TakeTime(name, input.utc, spec); !s.ok()) return s;
  }
  return {};
}

}  // namespace

HeadlineFacts AskedWith(const ReportOptions& options) {
  HeadlineFacts asked = {.traces = options.input.traces,
                         .filter = options.input.filter,
                         .narrowed_by = reader::NarrowedBy(options.input)};
  const auto add = [&asked](std::string_view option, const std::string& value) {
    if (value.empty()) return;
    // A value that begins with a dash would be taken for an option.
    asked.options.push_back(std::string(option) + '=' + value);
  };
  add("--from", options.from);
  add("--to", options.to);
  if (options.input.utc) asked.options.emplace_back("--utc");
  for (const std::string& key : options.input.keys) add("--key", key);
  return asked;
}

HelpPage ReportHelp() {
  std::string questions = "\nQuestions, and how they can be written:\n";
  for (const ReportRow& row : ReportRows()) {
    std::string name(row.name);
    if (!row.words.empty()) name += " " + std::string(row.words);
    name.resize(std::max<size_t>(name.size() + 1, 15), ' ');
    questions += "  " + name + std::string(row.help) + " (";
    for (const std::string_view format : row.formats) {
      questions += format == row.formats.front() ? "" : " ";
      questions += format;
    }
    questions += ")\n";
  }
  return {
      .command = "tracefs-report",
      .begin =
          "Usage: tracefs-report [OPTION]... [QUESTION] TRACE...\n"
          "       tracefs-report [OPTION]... --query FILE TRACE...\n"
          "       tracefs-report [OPTION]... TRACE... -o report.html\n"
          "       tracefs-report [OPTION]... diff A B -o report.html\n"
          "Answer questions about traces. TRACE is a file, a folder, or - for "
          "standard\ninput; several are merged. Without QUESTION: summary.\n",
      .rows = VisibleOptions(),
      .common = "format output filter from top help",
      .list = std::move(questions),
      .examples = {"tracefs-report slowest trace.log",
                   "tracefs-report slowest --filter 'op = fsync' --top 5 "
                   "trace.log",
                   "tracefs-report summary trace.log",
                   "tracefs-report slowest --print > mine.query",
                   "tracefs-report --query mine.query --format csv trace.log",
                   "tracefs-report errors --sql > errors.sql"},
      .end =
          "Exit status: 0 answered; 1 something of a trace is damaged, cut "
          "or lost, so that\nthe answer may lack it; 2 wrong usage; 3 the "
          "system refused.\n"};
}

Result<ReportOptions> ParseReportOptions(int argc, const char* const* argv) {
  const Result<CommandLine> line =
      CommandLine::Parse(argc, argv, VisibleOptions(), "words", kSeeHelp);
  if (!line.ok()) return line.status();
  const CommandLine& given = *line;
  ReportOptions result;
  if (given.AsksOnly(&result)) return result;
  result.print = given.Has("print");
  result.sql = given.Has("sql");
  result.wait = given.Has("wait");
  result.output = given.Text("output");
  if (given.Has("output") && result.output.empty()) {
    return Status::Invalid("--output: name a file");
  }
  if (result.output == "-") result.output.clear();
  if (Status s = ReadWords(given, &result); !s.ok()) return s;
  if (Status s = ReadFormat(given, &result); !s.ok()) return s;
  if (Status s = ReadTable(given, &result); !s.ok()) return s;
  if (Status s = ReadInput(given, &result); !s.ok()) return s;
  result.pager = ReadPagerOptions(given);
  return result;
}

}  // namespace tracefs
