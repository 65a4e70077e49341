#include "tracefs/tools/replay/options.h"

#include <unistd.h>

#include <charconv>
#include <sstream>

#include "tracefs/base/spelling.h"
#include "tracefs/base/units.h"
#include "tracefs/command/command_line.h"

namespace tracefs {
namespace {

using Strings = std::vector<std::string>;
using Text = std::string;

constexpr char kSeeHelp[] = " (see tracefs-replay --help)";

CommandOptions VisibleOptions() {
  return {
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
      {"order", "WHICH",
       "root (default): what works on the same file, name or handle keeps its "
       "order; thread: each thread for itself; global: one after the other; "
       "none: as it comes"},
      {"timing", "WHEN",
       "asap (default); original: at its time; scale=F: times multiplied by F; "
       "think[=F]: as long after the one before as it was then"},
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
      {.name = "undo",
       .value = "EXPR",
       .help = "say how to take back, in DIR, what operations that match EXPR "
               "did, by the bytes that the trace has: 'cuid = alice', and with "
               "STR_PID 'cpid = 4711'",
       .excludes = "filter from to until step clones prepare prepare-only "
                   "no-prepare existing plan order timing data expect check "
                   "digest direct closure skip-repeated"},
      {.name = "apply", .help = "with --undo: do so", .needs = "undo"},
      {"closure", "HOW",
       "what selected operations need of others: init (default): it is there "
       "before; include: those are done, too, but not timed; none"},
      {"data", "WHICH",
       "bytes written: recorded (default), zero, pattern, synth (same hash, "
       "same bytes)"},
      {"users", "WHICH",
       "self (default); recorded: as the recorded users, with the recorded "
       "owners of files: takes root"},
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
      {"on-mismatch", "WHAT",
       "count (default), warn: tell each at once, abort"},
      {"format", "NAME", "text (default) or json"},
      KeyOption(),
      HelpOption(),
      VersionOption()};
}

// One of some words; `*value` is its number.
template <typename T>
Status ReadWord(const CommandLine& given, const char* option,
                const std::vector<std::pair<const char*, T>>& words, T* value) {
  if (!given.Has(option)) return {};
  const Text word = given.Text(option);
  Text known;
  for (const auto& [name, number] : words) {
    if (word == name) {
      *value = number;
      return {};
    }
    known += (known.empty() ? "" : ", ") + Text(name);
  }
  return Status::Invalid(Text("--") + option + ": there is no \"" + word +
                         "\"; there are " + known);
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
                 std::optional<TracePoint>* point) {
  if (!given.Has(option)) return {};
  const Text text = given.Text(option);
  if (const std::optional<uint64_t> number = ParseUnsigned(text)) {
    *point = TracePoint{.sequence = number};
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
  *point = TracePoint{.time = *time};
  return {};
}

template <typename T>
Status ReadNumber(const CommandLine& given, const char* option, bool size,
                  uint64_t least, uint64_t most, T* value) {
  if (!given.Has(option)) return {};
  const Text text = given.Text(option);
  const auto number = size ? ParseSize(text) : ParseUnsigned(text);
  if (!number || *number < least || *number > most) {
    return Status::Invalid(Text("--") + option + ": \"" + text +
                           "\" is not from " + std::to_string(least) + " to " +
                           std::to_string(most));
  }
  *value = static_cast<T>(*number);
  return {};
}

Status ReadPlay(const CommandLine& given, ReplayOptions* result) {
  using replay::Closure;
  using replay::DataMode;
  using replay::OnMismatch;
  using replay::OrderMode;
  if (Status s = ReadWord<OrderMode>(given, "order",
                                     {{"root", OrderMode::kRoot},
                                      {"thread", OrderMode::kThread},
                                      {"global", OrderMode::kGlobal},
                                      {"none", OrderMode::kNone}},
                                     &result->play.order);
      !s.ok()) {
    return s;
  }
  if (Status s = ReadTiming(given, &result->play); !s.ok()) return s;
  if (Status s = ReadWord<OnMismatch>(given, "on-mismatch",
                                      {{"count", OnMismatch::kCount},
                                       {"warn", OnMismatch::kWarn},
                                       {"abort", OnMismatch::kAbort}},
                                      &result->play.on_mismatch);
      !s.ok()) {
    return s;
  }
  if (Status s = ReadWord<Closure>(given, "closure",
                                   {{"init", Closure::kInit},
                                    {"include", Closure::kInclude},
                                    {"none", Closure::kNone}},
                                   &result->builder.closure);
      !s.ok()) {
    return s;
  }
  if (Status s = ReadWord<DataMode>(given, "data",
                                    {{"recorded", DataMode::kRecorded},
                                     {"zero", DataMode::kZero},
                                     {"pattern", DataMode::kPattern},
                                     {"synth", DataMode::kSynth}},
                                    &result->target.data);
      !s.ok()) {
    return s;
  }
  if (given.Has("max-lag")) {
    const auto lag = ParseDuration(given.Text("max-lag"));
    if (!lag) return Status::Invalid("--max-lag: no time, such as 50ms");
    result->play.max_lag_ns = *lag;
  }
  result->play.skip_repeated = given.Has("skip-repeated");
  bool recorded = false;
  if (Status s = ReadWord<bool>(
          given, "users", {{"recorded", true}, {"self", false}}, &recorded);
      !s.ok()) {
    return s;
  }
  if (recorded && ::geteuid() != 0) {
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
       {ReadNumber(given, "max-bytes", true, 0, INT64_MAX,
                   &result->target.max_bytes),
        ReadNumber(given, "max-inodes", false, 0, INT64_MAX,
                   &result->target.max_inodes),
        ReadNumber(given, "threads", false, 1, replay::kMaxLanes,
                   &result->builder.lanes),
        ReadNumber(given, "clones", false, 1, 1024, &result->clones)}) {
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
  result.help = given.Has("help");
  result.version = given.Has("version");
  if (result.help || result.version) return result;
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
  result.apply = given.Has("apply");
  if (Status s = ReadWord<bool>(
          given, "format", {{"text", false}, {"json", true}}, &result.json);
      !s.ok()) {
    return s;
  }
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

std::string ReplayHelp() {
  std::ostringstream text;
  text << "Usage: tracefs-replay TRACE... --root DIR [OPTION]...\n"
          "       tracefs-replay TRACE... --check\n"
          "       tracefs-replay --digest DIR\n\n"
          "Does to DIR what was done to the traced directory, and checks that "
          "each\noperation comes to the same and that the tree is the same in "
          "the end.\n\n"
       << OptionsText(VisibleOptions())
       << "\nStatus: 0 all as recorded, 1 something differs, contents had to "
          "be made up or\nthe trace is damaged, 2 wrong usage, 3 the system "
          "refused.\n\nExamples:\n"
          "  tracefs-replay trace.log --check\n"
          "  tracefs-replay trace.log --root /mnt/new\n"
          "  tracefs-replay trace.log --root /mnt/new --timing original\n";
  return text.str();
}

}  // namespace tracefs
