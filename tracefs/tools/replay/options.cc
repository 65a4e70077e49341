#include "tracefs/tools/replay/options.h"

#include <unistd.h>

#include <charconv>

#include "tracefs/base/units.h"
#include "tracefs/command/command_line.h"

namespace tracefs {
namespace {

using Strings = std::vector<std::string>;
using Text = std::string;

constexpr char kSeeHelp[] = " (see tracefs-replay --help)";

constexpr Choice<replay::OrderMode> kOrders[] = {
    {"root", replay::OrderMode::kRoot},
    {"thread", replay::OrderMode::kThread},
    {"global", replay::OrderMode::kGlobal},
    {"none", replay::OrderMode::kNone}};
constexpr Choice<replay::OnMismatch> kOnMismatch[] = {
    {"count", replay::OnMismatch::kCount},
    {"warn", replay::OnMismatch::kWarn},
    {"abort", replay::OnMismatch::kAbort}};
constexpr Choice<replay::Closure> kClosures[] = {
    {"init", replay::Closure::kInit},
    {"include", replay::Closure::kInclude},
    {"none", replay::Closure::kNone}};
constexpr Choice<replay::DataMode> kData[] = {
    {"recorded", replay::DataMode::kRecorded},
    {"zero", replay::DataMode::kZero},
    {"pattern", replay::DataMode::kPattern},
    {"synth", replay::DataMode::kSynth}};
constexpr Choice<bool> kUsers[] = {{"self", false}, {"recorded", true}};
constexpr Choice<bool> kFormats[] = {{"text", false}, {"json", true}};

CommandOptions UndoOptions() {
  return {
      {.name = "undo",
       .value = "EXPR",
       .help = "say how to take back, in DIR, what operations that match EXPR "
               "did, by the bytes that the trace has: 'cuid = alice', and with "
               "STR_PID 'cpid = 4711'",
       .excludes = "filter from to until step clones prepare prepare-only "
                   "no-prepare existing plan order timing data expect check "
                   "digest direct closure skip-repeated"},
      {.name = "apply", .help = "with --undo: do so", .needs = "undo"},
      {.name = "kept",
       .value = "FOLDER",
       .help = "with --undo: where what STR_KEEP kept is now, if not where the "
               "trace says",
       .needs = "undo"}};
}

CommandOptions VisibleOptions() {
  CommandOptions rows = {
      {"root,r", "DIR",
       "replay below this directory; it must be empty, or see --existing"},
      {"plan", "FILE",
       "keep what TRACE is compiled to; FILE may then be given as TRACE"},
      {"check", "", "say what TRACE lacks for a replay, and do nothing"},
      {"digest", "DIR", "print the digest of a tree, and do nothing"},
      {"expect", "FILE",
       "compare the end state with this digest, path by path"},
      {.name = "prepare",
       .help = "build the tree that was there before: the default where DIR is "
               "empty",
       .excludes = "no-prepare"},
      {"no-prepare", "", "do not build it"},
      {"prepare-only", "", "build it, and replay nothing"},
      {"existing", "",
       "DIR may be changed as it is, empty or not; root refuses that where "
       "others could change it meanwhile"},
      {"no-verify", "", "do not look at the tree in the end"},
      {.name = "order",
       .value = "WHICH",
       .help = "root (default): what works on the same file, name or handle "
               "keeps its order; thread: each thread for itself; global: one "
               "after the other; none: as it comes",
       .words = WordsOf(kOrders)},
      {.name = "timing",
       .value = "WHEN",
       .help = "asap (default); original: at its time; scale=F: times "
               "multiplied by F; think[=F]: as long after the one before as it "
               "was then",
       .words = "asap original scale= think",
       .open = true},
      {"skip-repeated", "",
       "leave out look-ups and getattr of what was looked at before and has "
       "not been changed since: kernels ask them of a mount, not programs"},
      {"max-lag", "TIME", "end if an operation is later than that"},
      {"threads", "N",
       "at most so many threads at once; default: as recorded, up to 256"},
      {"clones", "N", "replay N times at once, in DIR/clone1, DIR/clone2, ..."},
      {"filter,f", "EXPR", "replay only what matches"},
      {"from", "POINT",
       "replay from there: the number of an operation, 14:03:07, +5s after the "
       "begin, or @NS"},
      {"to", "POINT", "and what began before that"},
      {"until", "POINT",
       "stop there: DIR is then the tree as it was; what follows is not "
       "compared"},
      {"step", "",
       "show each operation before it is done: Enter does it, a number does so "
       "many, b goes one back, c goes on, q ends"},
      {.name = "closure",
       .value = "HOW",
       .help = "what selected operations need of others: init (default): it is "
               "there before; include: those are done, too, but not timed; "
               "none",
       .words = WordsOf(kClosures)},
      {.name = "data",
       .value = "WHICH",
       .help = "bytes written: recorded (default), zero, pattern, synth (same "
               "hash, same bytes)",
       .words = WordsOf(kData)},
      {.name = "users",
       .value = "WHICH",
       .help = "self (default); recorded: as the recorded users, with the "
               "recorded owners of files: takes root",
       .words = WordsOf(kUsers)},
      {"set-id", "", "set-user-ID and set-group-ID bits, too"},
      {"security-xattrs", "",
       "security.* attributes, too: file capabilities, labels"},
      {"trusted-xattrs", "",
       "trusted.* attributes, too, and others that are neither user.* nor "
       "ACLs"},
      {"direct", "", "O_DIRECT where offsets and lengths allow it"},
      {"devices", "", "make device nodes, too: takes root"},
      {"max-bytes", "SIZE",
       "end before more is written; default: what is free on DIR"},
      {"max-inodes", "N", "end before more files are made"},
      {.name = "on-mismatch",
       .value = "WHAT",
       .help = "count (default), warn: tell each at once, abort",
       .words = WordsOf(kOnMismatch)},
      {.name = "format",
       .value = "NAME",
       .help = "text (default) or json",
       .words = WordsOf(kFormats)},
      KeyOption(),
      HelpOption(),
      VersionOption()};
  const CommandOptions undo = UndoOptions();
  rows.insert(rows.end(), undo.begin(), undo.end());
  return rows;
}

Result<double> ReadFactor(const Text& text, const char* option) {
  double factor = 0;
  const auto end =
      std::from_chars(text.data(), text.data() + text.size(), factor);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size() ||
      !(factor > 0) || factor > 1e6) {
    return Status::Invalid(Text(option) + ": \"" + text +
                           "\" is no factor above 0");
  }
  return factor;
}

Status ReadTiming(const CommandLine& given, replay::PlayOptions* play) {
  if (!given.Has("timing")) return {};
  const Text word = given.Text("timing");
  const size_t equals = word.find('=');
  const Text name = word.substr(0, equals);
  if (equals != word.npos && (name == "scale" || name == "think")) {
    const Result<double> factor =
        ReadFactor(word.substr(equals + 1), "--timing");
    if (!factor.ok()) return factor.status();
    play->scale = *factor;
  }
  if (word == "asap") {
    play->timing = replay::TimingMode::kAsap;
  } else if (word == "original") {
    play->timing = replay::TimingMode::kOriginal;
  } else if (name == "scale" && equals != word.npos) {
    play->timing = replay::TimingMode::kScale;
  } else if (name == "think") {
    play->timing = replay::TimingMode::kThink;
  } else {
    return Status::Invalid("--timing: there is no \"" + word +
                           "\"; there are asap, original, scale=F, think[=F]");
  }
  return {};
}

Status ReadPoint(const CommandLine& given, const char* option,
                 std::optional<replay::TracePoint>* point) {
  if (!given.Has(option)) return {};
  const Text text = given.Text(option);
  if (const std::optional<uint64_t> number = ParseUnsigned(text)) {
    *point = replay::TracePoint{.sequence = number};
    return {};
  }
  const Result<TimeSpec> time =
      ParseTimeSpec(Text("--") + option, text, /*utc=*/false);
  if (!time.ok()) {
    return Status::Invalid(time.status().message() +
                           ", or the number of an operation");
  }
  if (time->NeedsEnd()) {
    return Status::Invalid(Text("--") + option + ": \"" + text +
                           "\" is counted from the end, which is not known "
                           "before a replay has read it; write +5s (from its "
                           "begin), a time, or the number of an operation");
  }
  *point = replay::TracePoint{.time = *time};
  return {};
}

Status ReadPlay(const CommandLine& given, ReplayOptions* result) {
  given.Take("order", kOrders, &result->play.order);
  if (Status s = ReadTiming(given, &result->play); !s.ok()) return s;
  given.Take("on-mismatch", kOnMismatch, &result->play.on_mismatch);
  given.Take("closure", kClosures, &result->builder.closure);
  given.Take("data", kData, &result->target.data);
  if (given.Has("max-lag")) {
    const auto lag = ParseDuration(given.Text("max-lag"));
    if (!lag) return Status::Invalid("--max-lag: no time, such as 50ms");
    result->play.max_lag_ns = *lag;
  }
  result->play.skip_repeated = given.Has("skip-repeated");
  bool recorded = false;
  given.Take("users", kUsers, &recorded);
  // An undo gives ACLs back, too, which any owner can.
  if (recorded && ::geteuid() != 0 && !given.Has("undo")) {
    return Status::Invalid("--users recorded takes root; self is the default");
  }
  if (given.Has("devices") && ::geteuid() != 0) {
    return Status::Invalid("--devices takes root");
  }
  result->target.owners_matter = ::geteuid() == 0 && !given.Has("users");
  using replay::Privilege;
  for (const auto& [asked, privilege] :
       {std::pair(recorded, Privilege::kOwner),
        {given.Has("set-id"), Privilege::kSetId},
        {given.Has("security-xattrs"), Privilege::kSecurityXattr},
        {given.Has("trusted-xattrs"), Privilege::kTrustedXattr},
        {given.Has("devices"), Privilege::kDevice}}) {
    if (asked) result->target.grants.Add(privilege);
  }
  result->target.direct = given.Has("direct");
  for (Status s :
       {given.TakeSize("max-bytes", 0, INT64_MAX, &result->target.max_bytes),
        given.Take("max-inodes", 0, INT64_MAX, &result->target.max_inodes),
        given.Take("threads", 1, replay::kMaxLanes, &result->builder.lanes),
        given.Take("clones", 1, 1024, &result->clones)}) {
    if (!s.ok()) return s;
  }
  return {};
}

Status CheckTogether(const ReplayOptions& o) {
  if (!o.digest_of.empty()) {
    return o.traces.empty() ? Status()
                            : Status::Invalid("--digest takes no TRACE");
  }
  if (o.traces.empty()) {
    return Status::Invalid("no TRACE given" + Text(kSeeHelp));
  }
  if (o.root.empty() && !o.check && o.plan.empty()) {
    return Status::Invalid(
        "--root DIR says where to replay; --check and --plan FILE need none");
  }
  if (o.step && o.clones > 1) {
    return Status::Invalid("--step is for one replay, not for --clones");
  }
  if (o.step && o.existing) {
    return Status::Invalid("--step may have to start over: not in --existing");
  }
  if (o.json && o.step) return Status::Invalid("--step has no JSON");
  return {};
}

}  // namespace

Result<ReplayOptions> ParseReplayOptions(int argc, const char* const* argv) {
  const Result<CommandLine> parsed =
      CommandLine::Parse(argc, argv, VisibleOptions(), "trace", kSeeHelp);
  if (!parsed.ok()) return parsed.status();
  const CommandLine& given = *parsed;
  ReplayOptions result;
  if (given.AsksOnly(&result)) return result;
  result.traces = given.Texts("trace");
  result.keys = given.Texts("key");
  result.root = given.Text("root");
  result.plan = given.Text("plan");
  result.digest_of = given.Text("digest");
  result.expect = given.Text("expect");
  result.check = given.Has("check");
  if (given.Has("prepare")) result.prepare = true;
  if (given.Has("no-prepare")) result.prepare = false;
  result.prepare_only = given.Has("prepare-only");
  result.existing = given.Has("existing");
  result.verify_tree = !given.Has("no-verify");
  result.filter = given.Text("filter");
  result.step = given.Has("step");
  result.undo = given.Text("undo");
  if (!result.undo.empty()) {
    result.traces = replay::WithAllParts(result.traces);
  }
  result.apply = given.Has("apply");
  result.kept = given.Text("kept");
  given.Take("format", kFormats, &result.json);
  for (const auto& [option, point] :
       {std::pair{"from", &result.from}, std::pair{"to", &result.to},
        std::pair{"until", &result.until}}) {
    if (Status s = ReadPoint(given, option, point); !s.ok()) return s;
  }
  if (Status s = ReadPlay(given, &result); !s.ok()) return s;
  if (result.step) result.play.order = replay::OrderMode::kGlobal;
  if (Status s = CheckTogether(result); !s.ok()) return s;
  return result;
}

HelpPage ReplayHelp() {
  return {
      .command = "tracefs-replay",
      .begin =
          "Usage: tracefs-replay TRACE... --root DIR [OPTION]...\n"
          "       tracefs-replay TRACE... --check\n"
          "       tracefs-replay --digest DIR\n\n"
          "Does to DIR what was done to the traced directory, and checks "
          "that each\noperation comes to the same and that the tree is the "
          "same in the end.\n",
      .rows = VisibleOptions(),
      .common = "root check timing existing filter until undo apply step help",
      .examples = {"tracefs-replay trace.log --check",
                   "tracefs-replay trace.log --root /mnt/new",
                   "tracefs-replay trace.log --root /data --undo 'cname = rm'",
                   "tracefs-replay trace.log --root /mnt/new --timing "
                   "original"},
      .end =
          "Exit status: 0 all as recorded, 1 something differs, contents had "
          "to be made up\nor the trace is damaged, 2 wrong usage, 3 the "
          "system refused.\n"};
}

}  // namespace tracefs
