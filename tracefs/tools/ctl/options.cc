#include "tracefs/tools/ctl/options.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "tracefs/base/clock.h"
#include "tracefs/base/join.h"
#include "tracefs/base/spelling.h"
#include "tracefs/base/text_cursor.h"
#include "tracefs/base/units.h"
#include "tracefs/command/command_line.h"
#include "tracefs/export/table.h"
#include "tracefs/text/shell_word.h"

namespace tracefs {
namespace {

constexpr char kSeeHelp[] = " (see tracefs-ctl --help)";
constexpr uint64_t kMaxPatienceS = 86400;
// Outputs may have to take much at the end, and each has its own deadline.
constexpr std::chrono::seconds kUnmountPatience{600};
constexpr uint64_t kMinIntervalMs = 100;
constexpr uint64_t kMaxIntervalMs = 3'600'000;

struct CommandRow {
  std::string_view name;
  CtlCommand command;
  bool tracer;  // takes a tracer: its id or its name
  enum { kNone, kFilter, kMaybeFilter, kFile, kMaybeFile, kHold } argument;
  std::string_view arguments;  // for --help
  std::string_view help;
};

constexpr CommandRow kCommands[] = {
    {"list", CtlCommand::kList, false, CommandRow::kNone, "",
     "the tracers: id, state, what they have written and lost, filter"},
    {"explain", CtlCommand::kExplain, false, CommandRow::kNone, "",
     "what the kernel may do by itself, which tracer and filter forced each "
     "choice, and what it hides"},
    {"stats", CtlCommand::kStats, false, CommandRow::kNone, "",
     "per tracer: operations seen, matched, recorded and lost, bytes, time and "
     "queues of each stage"},
    {"flush", CtlCommand::kFlush, false, CommandRow::kNone, "",
     "hand on what is still in memory, down to the outputs"},
    {"add", CtlCommand::kAdd, false, CommandRow::kFile, "FILE",
     "start the tracers of a config, all or none; prints their ids"},
    {"reload", CtlCommand::kReload, false, CommandRow::kMaybeFile, "[FILE]",
     "trace as FILE, or the mount's config, says now: tracers that are the "
     "same "
     "go on"},
    {"remove", CtlCommand::kRemove, true, CommandRow::kNone, "TRACER",
     "end a tracer and close its output"},
    {"stop", CtlCommand::kStop, true, CommandRow::kNone, "TRACER",
     "pause a tracer; its output stays open"},
    {"start", CtlCommand::kStart, true, CommandRow::kNone, "TRACER",
     "resume a stopped tracer"},
    {"set-filter", CtlCommand::kSetFilter, true, CommandRow::kFilter,
     "TRACER EXPR", "give a tracer another filter"},
    {"snapshot", CtlCommand::kSnapshot, true, CommandRow::kNone, "TRACER",
     "write what a flight recorder holds to a new file; prints its path"},
    {"rules", CtlCommand::kRules, false, CommandRow::kNone, "",
     "the rules of configs: state, alarms, and what became of them"},
    {"held", CtlCommand::kHeld, false, CommandRow::kNone, "",
     "whose changes a rule holds, since when, until when, and who waits"},
    {"release", CtlCommand::kRelease, false, CommandRow::kHold, "HOLD",
     "end a hold: --go-on, --fail, --kill PID or --undo"},
    {"undo", CtlCommand::kUndo, false, CommandRow::kFilter, "EXPR",
     "take back what operations that match EXPR did, beside the work of "
     "others; "
     "what others changed since stays, and is told"},
    {"tail", CtlCommand::kTail, false, CommandRow::kMaybeFilter, "[EXPR]",
     "print operations as they happen; disturbs no tracer"},
    {"upgrade", CtlCommand::kUpgrade, false, CommandRow::kNone, "",
     "go on with the program that is installed now, without an end of the "
     "mount (--survive yes)"},
    {"unmount", CtlCommand::kUnmount, false, CommandRow::kNone, "",
     "unmount it, and return when its traces are complete"},
    {"top", CtlCommand::kTop, false, CommandRow::kMaybeFilter, "[EXPR]",
     "the busiest operations, processes, files and directories, live: a screen "
     "to sort, search and open (? shows the keys)"},
};

template <typename Row>
std::vector<std::string_view> NamesOf(std::span<const Row> rows) {
  std::vector<std::string_view> names;
  for (const Row& row : rows) names.push_back(row.name);
  return names;
}

constexpr Choice<bool> kUsers[] = {{"self", false}, {"recorded", true}};

CommandOptions HoldOptions() {
  return {{.name = "go-on",
           .help = "release: what waits goes on",
           .excludes = "fail kill undo"},
          {.name = "fail",
           .help = "release: what waits fails (EPERM)",
           .excludes = "kill undo"},
          {.name = "kill",
           .value = "PID",
           .help = "release: that process is killed, and what waits fails",
           .excludes = "undo"},
          {"undo", "",
           "release: what the held process and all below it did is taken back "
           "while it is still held, with the options of undo; then what waits "
           "fails"}};
}

CommandOptions UndoOptions() {
  return {
      {"dry-run", "", "undo: show what would be done, and what not and why"},
      {"yes,y", "", "undo: do not ask, also on a terminal"},
      {.name = "trace",
       .value = "FILE",
       .help =
           "undo: the trace that tells what was done, if not the mount's own "
           "as tracefs-mount noted it"},
      KeyOption(),
      {"kept", "FOLDER",
       "undo: where what STR_KEEP kept is, if not where tracefs-mount noted"},
      {.name = "users",
       .value = "WHICH",
       .help = "undo: self (default); recorded: files get their owners back, "
               "which takes root, and ACLs that name users or groups",
       .words = WordsOf(kUsers)},
      {"set-id", "", "undo: set-user-ID and set-group-ID bits, too"},
      {"security-xattrs", "",
       "undo: security.* attributes, too: file capabilities, labels"},
      {"trusted-xattrs", "",
       "undo: trusted.* attributes, too, and others that are neither user.* "
       "nor "
       "ACLs"}};
}

CommandOptions VisibleOptions() {
  CommandOptions rows = {
      {"all", "",
       "instead of MNT: all mounts of the caller on this host, one after "
       "another; top shows them together"},
      {"as-owner", "",
       "as root: act on a mount of another user, too, with the ids of that "
       "user; with --all on everybody's"},
      {"follow", "", "rules: print alarms from now on, a line each"},
      {"timeout", "SECONDS",
       "how long to wait for an answer; default 60, of unmount 600"},
      {.name = "format",
       .value = "NAME",
       .help = "tail: output format: " + LineFormatNames() +
               "; default text. list, explain, stats, add, rules, held, "
               "undo, upgrade, unmount, "
               "top --by: text or json",
       .words = LineFormatNames() + " json"},
      {.name = "time-format",
       .value = "FORM",
       .help = "tail, text: clock, date, iso, epoch, ns, relative (to the "
               "first one shown) or delta (to the one before)",
       .words = WordsOf(kTimeForms)},
      {"utc", "", "tail, text: times in UTC instead of local time"},
      {"interval", "TIME",
       "top: between two pictures, such as 500ms; default 2s"},
      {"rounds,n", "N",
       "top: end after so many pictures, default 1 where the output is no "
       "terminal; tail: after so many operations"},
      {"batch,b", "",
       "top: plain text, a picture after the other, on a terminal too"},
      {"once", "", "top: the same as --batch --rounds 1"},
      {.name = "view",
       .value = "VIEW",
       .help = "top: " + JoinWords(screen::ViewNames(), ", ") +
               "; begins with it; as plain text all its rows",
       .words = JoinWords(screen::ViewNames(), ", ")},
      {.name = "sort",
       .value = "COLUMN",
       .help = "top: " + JoinWords(screen::ColumnNames(), ", ") +
               "; default count. With --by: any column; -COLUMN: smallest "
               "first",
       .words = JoinWords(screen::ColumnNames(), ", "),
       .open = true},
      {"by", "KEYS",
       "top: a table an interval instead of the screen, of operations grouped "
       "by op, cname, dir(2), path and others, as of tracefs-dump --by; with "
       "--format json as JSON Lines"},
      {"values", "VALUES",
       "top --by: count, errors, bytes, latency (the default), time, mean, "
       "p50, p99, max, size and others"},
      {"top", "N",
       "top --by: that many rows, then one line of all others; all: every row. "
       "Default: 20 on a terminal, else all"},
      {"also", "MNT",
       "top: another mount to look at; may be given several times",
       /*repeated=*/true},
      {.name = "color",
       .value = "WHEN",
       .help = "top: auto, always or never; default auto",
       .words = WordsOf(screen::kColourWishes)},
      HelpOption(),
      VersionOption()};
  for (const CommandOptions& more : {HoldOptions(), UndoOptions()}) {
    rows.insert(rows.end() - 2, more.begin(), more.end());
  }
  return rows;
}

// Options belong to commands: what would be ignored is refused.
Status CheckBelongs(const CommandLine& given, CtlCommand command,
                    const CommandRow& row) {
  struct Belongs {
    const char* option;
    std::vector<CtlCommand> to;
  };
  using C = CtlCommand;
  const Belongs all[] = {
      {"follow", {C::kRules}},
      {"format",
       {C::kList, C::kExplain, C::kStats, C::kAdd, C::kRules, C::kTop, C::kTail,
        C::kUpgrade, C::kUnmount, C::kUndo, C::kHeld, C::kRelease}},
      {"go-on", {C::kRelease}},
      {"fail", {C::kRelease}},
      {"kill", {C::kRelease}},
      {"undo", {C::kRelease}},
      {"dry-run", {C::kUndo}},
      {"yes", {C::kUndo, C::kRelease}},
      {"trace", {C::kUndo, C::kRelease}},
      {"key", {C::kUndo, C::kRelease}},
      {"kept", {C::kUndo, C::kRelease}},
      {"users", {C::kUndo, C::kRelease}},
      {"set-id", {C::kUndo, C::kRelease}},
      {"security-xattrs", {C::kUndo, C::kRelease}},
      {"trusted-xattrs", {C::kUndo, C::kRelease}},
      {"utc", {C::kTail}},
      {"time-format", {C::kTail}},
      {"interval", {C::kTop}},
      {"rounds", {C::kTop, C::kTail}},
      {"batch", {C::kTop}},
      {"once", {C::kTop}},
      {"view", {C::kTop}},
      {"sort", {C::kTop}},
      {"by", {C::kTop}},
      {"values", {C::kTop}},
      {"top", {C::kTop}},
      {"also", {C::kTop}},
      {"color", {C::kTop}},
  };
  for (const Belongs& one : all) {
    if (given.Has(one.option) &&
        std::find(one.to.begin(), one.to.end(), command) == one.to.end()) {
      return Status::Invalid(std::string("--") + one.option +
                             " does not go with " + std::string(row.name) +
                             kSeeHelp);
    }
  }
  return Status::Ok();
}

// For all commands but tail: whether JSON is wanted.
Status TakeFormat(const CommandLine& given, CtlOptions* options) {
  const std::string format = given.Text("format");
  options->json = format == "json";
  if (format.empty() || format == "text" || options->json) return {};
  return Status::Invalid("--format: there is no " + Quoted(format) +
                         "; there are text, json");
}

Status TakeTailOptions(const CommandLine& given, CtlOptions* options) {
  if (given.Has("format")) options->format = given.Text("format");
  if (FindLineFormat(options->format) == nullptr) {
    return Status::Invalid("--format: there is no " + Quoted(options->format) +
                           "; there are " + LineFormatNames());
  }
  if ((given.Has("utc") || given.Has("time-format")) &&
      options->format != "text") {
    return Status::Invalid("--utc and --time-format are for --format text");
  }
  if (given.Has("utc")) options->time = TimeStyle::kUtc;
  given.Take("time-format", kTimeForms, &options->form);
  return Status::Ok();
}

Status TakeTableOptions(const CommandLine& given, CtlOptions* options) {
  for (const char* const option : {"view", "color", "also", "all"}) {
    if (given.Has(option)) {
      return Status::Invalid("--by and --" + std::string(option) +
                             " exclude each other");
    }
  }
  auto table = ReadLiveTable(given.Text("by"), given.Text("values"),
                             given.Text("sort"), given.Text("top"));
  if (!table.ok()) return table.status();
  options->table = *std::move(table);
  options->table->json = options->json;
  return Status::Ok();
}

Status TakeTopOptions(const CommandLine& given, CtlOptions* options) {
  if (given.Has("interval")) {
    const std::string text = given.Text("interval");
    const std::optional<uint64_t> ns = ParseDuration(text);
    if (!ns || *ns < kMinIntervalMs * kNsPerMs ||
        *ns > kMaxIntervalMs * kNsPerMs) {
      return Status::Invalid("--interval: " + Quoted(text) +
                             " is no time from 100ms to 1h, such as 2s");
    }
    options->interval = std::chrono::milliseconds(*ns / kNsPerMs);
  }
  if (Status s = given.Take("rounds", 1, UINT32_MAX, &options->rounds);
      !s.ok()) {
    return s;
  }
  if (given.Has("once")) {
    if (given.Has("rounds")) {
      return Status::Invalid("--once and --rounds exclude each other");
    }
    options->rounds = 1;
  }
  options->batch = given.Has("batch") || given.Has("once");
  options->also = given.Texts("also");
  constexpr size_t kMaxMounts = 16;
  if (options->also.size() >= kMaxMounts) {
    return Status::Invalid("--also: at most " + std::to_string(kMaxMounts - 1) +
                           " more mounts");
  }
  if (given.Has("view")) {
    options->view = screen::FindView(given.Text("view"));
  }
  given.Take("color", screen::kColourWishes, &options->colour);
  if (given.Has("by")) return TakeTableOptions(given, options);
  for (const char* const option : {"values", "top", "format"}) {
    if (given.Has(option) && options->command == CtlCommand::kTop) {
      return Status::Invalid("top: --" + std::string(option) +
                             " is for what --by groups" + kSeeHelp);
    }
  }
  if (!given.Has("sort")) return Status::Ok();
  const std::string name = given.Text("sort");
  const screen::ColumnInfo* column = screen::FindColumn(name);
  if (column == nullptr) {
    return Status::Invalid("--sort: there is no " + Quoted(name) +
                           "; there are " +
                           JoinWords(screen::ColumnNames(), ", ") +
                           DidYouMean(name, screen::ColumnNames()));
  }
  options->sort = column->column;
  return Status::Ok();
}

Status TakeHoldOptions(const CommandLine& given, CtlOptions* options) {
  if (options->command != CtlCommand::kRelease) return Status::Ok();
  using End = CtlOptions::HoldEnd;
  uint64_t kill = 0;
  if (Status s = given.Take("kill", 2, INT32_MAX, &kill); !s.ok()) return s;
  options->kill = static_cast<uint32_t>(kill);
  if (given.Has("go-on")) options->end = End::kGoOn;
  if (given.Has("fail") || given.Has("kill")) options->end = End::kFail;
  if (given.Has("undo")) options->end = End::kUndo;
  if (options->end == End::kNone) {
    return Status::Invalid(
        "release: what is to become of what waits? --go-on, --fail, --kill PID "
        "or --undo");
  }
  return Status::Ok();
}

Status TakeUndoOptions(const CommandLine& given, CtlOptions* options) {
  options->dry_run = given.Has("dry-run");
  options->yes = given.Has("yes");
  if (options->dry_run && options->yes) {
    return Status::Invalid("--dry-run and --yes exclude each other");
  }
  if (given.Has("trace")) options->traces = {given.Text("trace")};
  options->keys = given.Texts("key");
  options->kept = given.Text("kept");
  bool recorded = false;
  given.Take("users", kUsers, &recorded);
  options->target.owners_matter = ::geteuid() == 0 && !given.Has("users");
  using replay::Privilege;
  for (const auto& [asked, privilege] :
       {std::pair(recorded, Privilege::kOwner),
        {given.Has("set-id"), Privilege::kSetId},
        {given.Has("security-xattrs"), Privilege::kSecurityXattr},
        {given.Has("trusted-xattrs"), Privilege::kTrustedXattr}}) {
    if (asked) options->target.grants.Add(privilege);
  }
  return Status::Ok();
}

// The words after the command.
Status TakeArguments(const CommandRow& row, std::span<const std::string> words,
                     CtlOptions* options) {
  const std::string usage = "usage: tracefs-ctl MNT " + std::string(row.name) +
                            (row.arguments.empty() ? "" : " ") +
                            std::string(row.arguments);
  if (row.tracer) {
    if (words.empty()) return Status::Invalid(usage);
    options->tracer = words[0];
    // No name begins like that.
    const char first = words[0].empty() ? '0' : words[0][0];
    if (first >= '0' && first <= '9' &&
        ParseUnsigned(words[0]).value_or(UINT64_MAX) > UINT32_MAX) {
      return Status::Invalid("TRACER: " + Quoted(words[0]) +
                             " is no number from 0 to " +
                             std::to_string(UINT32_MAX) + kSeeHelp);
    }
    words = words.subspan(1);
  }
  // A filter may be given in several words, as the shell has split it.
  const bool filter = row.argument == CommandRow::kFilter ||
                      row.argument == CommandRow::kMaybeFilter;
  const bool file = row.argument == CommandRow::kFile ||
                    row.argument == CommandRow::kMaybeFile;
  const bool hold = row.argument == CommandRow::kHold;
  const size_t most = filter ? words.size() : file || hold ? 1 : 0;
  const bool needed = hold || row.argument == CommandRow::kFilter ||
                      row.argument == CommandRow::kFile;
  if ((needed && words.empty()) || words.size() > most) {
    return Status::Invalid(usage);
  }
  for (const std::string& word : words) {
    if (hold) {
      const auto number = ParseUnsigned(word);
      if (!number || *number == 0 || *number > UINT32_MAX) {
        return Status::Invalid("HOLD: " + Quoted(word) +
                               " is no number that held shows");
      }
      options->hold = static_cast<uint32_t>(*number);
      continue;
    }
    if (file) {
      options->file = word;
      continue;
    }
    AppendWord(word, " ", &options->filter);
  }
  return Status::Ok();
}

}  // namespace

HelpPage CtlHelp() {
  std::string begin =
      "Usage: tracefs-ctl MNT COMMAND [ARGUMENT]... [OPTION]...\n"
      "       tracefs-ctl --all COMMAND [ARGUMENT]... [OPTION]...\n"
      "Ask and steer the tracefs mount that MNT lies in: its mount point, or "
      "anything\nbelow it. Only the user who mounted it may, and root with "
      "--as-owner.\n\nCommands:\n";
  constexpr size_t kWidth = 20;
  for (const CommandRow& row : kCommands) {
    std::string left = std::string(row.name) + ' ' + std::string(row.arguments);
    left.resize(std::max(left.size() + 1, kWidth), ' ');
    begin += "  " + left + std::string(row.help) + '\n';
  }
  begin += "\nTRACER is the id of a tracer, as list has it, or its name.\n";
  return {
      .command = "tracefs-ctl",
      .begin = std::move(begin),
      .rows = VisibleOptions(),
      .common = "all as-owner help",
      .examples = {"tracefs-ctl /data explain",
                   "tracefs-ctl /data tail 'op = unlink AND errno = 0'",
                   "tracefs-ctl --all list",
                   "tracefs-ctl /data add detail.conf",
                   "tracefs-ctl /data stop detail",
                   "tracefs-ctl /data set-filter 2 'cuid = alice AND op IN { "
                   "open unlink }'",
                   "tracefs-ctl /data undo --dry-run 'under(cpid = 4711)'",
                   "tracefs-ctl /data unmount && tracefs-dump "
                   "/var/log/data.trace"},
      .end =
          "Exit status: 0 done; 1 the answer made no sense, unmount: not "
          "all is in the\ntraces, or undo: not all was taken back; 2 wrong "
          "usage, config or filter; 3 the "
          "system refused.\n"};
}

Result<CtlOptions> ParseCtlOptions(int argc, const char* const* argv) {
  const Result<CommandLine> line =
      CommandLine::Parse(argc, argv, VisibleOptions(), "word", kSeeHelp);
  if (!line.ok()) return line.status();
  const CommandLine& given = *line;

  CtlOptions result;
  if (given.AsksOnly(&result)) return result;
  std::vector<std::string> words = given.Texts("word");
  result.all = given.Has("all");
  result.as_owner = given.Has("as-owner");
  // In the place of the mount.
  if (result.all) words.insert(words.begin(), "");
  if (words.size() < 2) {
    return Status::Invalid("a mount and a command are needed" +
                           std::string(kSeeHelp));
  }
  result.mount = words[0];
  const CommandRow* row = nullptr;
  for (const CommandRow& one : kCommands) {
    if (one.name == words[1]) row = &one;
  }
  if (row == nullptr) {
    for (const CommandRow& one : kCommands) {
      if (one.name != words[0]) continue;
      return Status::Invalid(
          "the mount comes first; did you mean: tracefs-ctl " +
          ShellPath(words[1]) + ' ' + words[0]);
    }
    return Status::Invalid(
        "there is no command " + Quoted(words[1]) +
        DidYouMean(words[1], NamesOf<CommandRow>(kCommands)) + kSeeHelp);
  }
  result.command = row->command;
  if (result.all) {
    using C = CtlCommand;
    constexpr std::array kForAll = {C::kList,  C::kExplain, C::kStats,
                                    C::kFlush, C::kReload,  C::kRules,
                                    C::kTop,   C::kUpgrade, C::kUnmount};
    const bool no = std::ranges::find(kForAll, row->command) == kForAll.end();
    if (no || given.Has("follow") || given.Has("also")) {
      return Status::Invalid("--all does not go with " +
                             (no                    ? std::string(row->name)
                              : given.Has("follow") ? "rules --follow"
                                                    : "--also") +
                             kSeeHelp);
    }
  }
  if (Status s = CheckBelongs(given, result.command, *row); !s.ok()) return s;
  const std::span<const std::string> arguments(words);
  if (Status s = TakeArguments(*row, arguments.subspan(2), &result); !s.ok()) {
    return s;
  }
  result.follow = given.Has("follow");
  if (result.command == CtlCommand::kUnmount) {
    result.patience = kUnmountPatience;
  }
  auto patience = static_cast<uint64_t>(result.patience.count());
  if (Status s = given.Take("timeout", 1, kMaxPatienceS, &patience); !s.ok()) {
    return s;
  }
  result.patience = std::chrono::seconds(patience);
  const bool tail = result.command == CtlCommand::kTail;
  if (Status s = (tail ? TakeTailOptions : TakeFormat)(given, &result);
      !s.ok()) {
    return s;
  }
  if (Status s = TakeTopOptions(given, &result); !s.ok()) return s;
  if (Status s = TakeHoldOptions(given, &result); !s.ok()) return s;
  if (Status s = TakeUndoOptions(given, &result); !s.ok()) return s;
  return result;
}

}  // namespace tracefs
