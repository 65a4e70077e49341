#include "tracefs/mount/commands.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <nlohmann/json.hpp>

#include "tracefs/base/notice.h"
#include "tracefs/base/text.h"
#include "tracefs/base/version.h"
#include "tracefs/control/tail_stream.h"
#include "tracefs/control/wish_json.h"
#include "tracefs/mount/answers.h"
#include "tracefs/mount/config_difference.h"
#include "tracefs/mount/name_collector.h"
#include "tracefs/survive/hand_over.h"
#include "tracefs/survive/keeper.h"
#include "tracefs/tracers/parts.h"
#include "tracefs/tracers/survives.h"
#include "tracefs/tracers/warnings.h"

namespace tracefs {
namespace {

constexpr size_t kExamples = 20;
// Blocks that wait for one client: more than a terminal can show in a second.
constexpr size_t kTailBytes = size_t{8} << 20;
constexpr uint64_t kWatchEveryMs = 2000;
constexpr uint64_t kMinWatchEveryMs = 100;
constexpr uint64_t kMaxWatchEveryMs = 3'600'000;

// The config in a request.
Result<Config> ConfigOf(const ControlRequest& request) {
  const Result<std::string> source = request.Text("config");
  const Result<std::string> file = request.Text("file");
  if (!source.ok()) return source.status();
  if (!file.ok()) return file.status();
  return ParseConfig(*source, *file, FullSchema());
}

// The file that the config is a part of; nothing if it is all of it.
Result<std::optional<std::vector<FileTracer>>> AmongOf(
    const ControlRequest& request, const TracerRegistry::Entries& running) {
  const Result<std::string> ids = request.Text("among");
  if (!ids.ok()) return std::optional<std::vector<FileTracer>>();
  Result<std::vector<FileTracer>> tracers = TracersAmong(*ids, running);
  if (!tracers.ok()) return tracers.status();
  return std::optional(*std::move(tracers));
}

Json WarningsJson(const std::vector<TracerPlan>& plans,
                  const WarningFacts& facts) {
  Json warnings = Json::array();
  for (const TracerPlan& plan : plans) {
    const bool rules = plan.parts.kind == TracerKind::kRules;
    const std::string tracer =
        (rules ? "rules of tracer " : "tracer ") +
        std::to_string(rules ? plan.rules_of : plan.parts.id) + ": ";
    for (const std::string& warning : WarningsOf(plan, facts)) {
      warnings.push_back(tracer + warning);
    }
  }
  return warnings;
}

ExplainedChoice WhatCannotBeRecorded(const TracerRegistry& tracers,
                                     const TracerRegistry::Entries& entries) {
  ExplainedChoice choice;
  choice.subject = "operations that cannot be recorded";
  std::string who;
  for (const auto& [id, entry] : entries) {
    if (!entry.fails_closed || entry.suspended) continue;
    who += (who.empty() ? "" : ", ") + std::to_string(id);
  }
  choice.choice = who.empty() ? "done, and counted as lost"
                              : "refused (EIO) where one of these tracers may "
                                "have to record them: " +
                                    who;
  choice.why = who.empty() ? "no running tracer says when_full = fail"
                           : "when_full = fail";
  if (tracers.stays_shut()) {
    choice.choice += "; if the daemon dies the mount stays shut";
  }
  return choice;
}

KnownNames NamesOf(const ControlRequest& request) {
  return {request.NamesOf("users"), request.NamesOf("groups")};
}

ControlAnswer Done(const Status& status) {
  if (!status.ok()) return status;
  return Answer(Json::object());
}

}  // namespace

template <Status (TracerRegistry::*kDo)(uint32_t)>
ControlAnswer MountCommands::ToTracer(ControlRequest& request) {
  const Result<uint32_t> id = request.Number("tracer");
  if (!id.ok()) return id.status();
  const TracerRegistry::Entries before = mount_.tracers.All();
  const auto tracer = before.find(*id);
  const bool bares = request.command != "start" && tracer != before.end() &&
                     tracer->second.fails_closed;
  const auto act = [&] { return (mount_.tracers.*kDo)(*id); };
  const Status done = Steer(request.command, *id, act);
  if (done.ok()) {
    Notify(NoticeId::kTracers,
           "tracer " + std::to_string(*id) + ": " + request.command +
               ", by tracefs-ctl" +
               (bares ? ": what it had refused (when_full = fail) is done from "
                        "here on, and not recorded"
                      : ""));
  }
  return Done(done);
}

struct MountCommands::Command {
  std::string_view name;
  ControlAnswer (MountCommands::*run)(ControlRequest&);
  bool quick;
  std::initializer_list<std::string_view> members;
};

const MountCommands::Command* MountCommands::FindCommand(
    std::string_view name) {
  using M = MountCommands;
  static const Command commands[] = {
      {"list", &M::List, true, {}},
      {"explain", &M::Explain, true, {}},
      {"stats", &M::Stats, true, {}},
      {"flush", &M::Flush, false, {}},
      {"check",
       &M::Check,
       false,
       {"config", "file", "filter", "users", "groups", "among"}},
      {"compare", &M::Compare, false, {"config", "file"}},
      {"add", &M::Add, false, {"config", "file", "users", "groups", "among"}},
      {"bind", &M::Bind, false, {"tracers"}},
      {"remove", &M::ToTracer<&TracerRegistry::Remove>, false, {"tracer"}},
      {"stop", &M::ToTracer<&TracerRegistry::Suspend>, false, {"tracer"}},
      {"start", &M::ToTracer<&TracerRegistry::Resume>, false, {"tracer"}},
      {"set-filter",
       &M::SetFilter,
       false,
       {"tracer", "filter", "users", "groups"}},
      {"snapshot", &M::Snapshot, false, {"tracer"}},
      {"rules", &M::Rules, true, {"last"}},
      {"held", &M::HeldOnes, true, {}},
      {"release", &M::Release, true, {"hold", "how"}},
      {"spare", &M::Spare, true, {"pid"}},
      {"tail", &M::Tail, false, {"filter", "users", "groups"}},
      {"watch",
       &M::Watch,
       false,
       {"filter", "users", "groups", "every_ms", "aggregate"}},
      {"config-seen", &M::ConfigSeen, true, {"version", "refused"}},
      {"upgrade", &M::Upgrade, false, {}},
      {"unmount", &M::Unmount, false, {}},
  };
  for (const Command& command : commands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

bool MountCommands::IsQuick(std::string_view command) const {
  const Command* known = FindCommand(command);
  return known == nullptr || known->quick;
}

ControlAnswer MountCommands::Handle(ControlRequest& request) {
  const Command* command = FindCommand(request.command);
  if (command == nullptr) {
    return Status::Invalid("unknown command " + Quoted(request.command));
  }
  if (Status s = request.CheckMembers(command->members); !s.ok()) return s;
  if (!request.files.empty() && request.command != "add") {
    return Status::Invalid("request: " + request.command + " takes no files");
  }
  return (this->*command->run)(request);
}

// --- Looking.

ControlAnswer MountCommands::List(ControlRequest& /*request*/) {
  const format::TraceHeader& header = mount_.traced.header;
  const std::vector<TracerStats> stats = mount_.traced.pipeline.Stats();
  const TracerRegistry::Entries entries = mount_.tracers.All();
  Json tracers = Json::array();
  for (const TracerStats& s : stats) {
    const auto found = entries.find(s.id);
    // It is just coming or going, or is not one that a client has asked for.
    if (found == entries.end() || s.kind == TracerKind::kRules) continue;
    tracers.push_back(ListJson(s, found->second));
  }
  Json list = {{"mount", header.Get("mount.point")},
               {"source", header.Get("backing.path")},
               {"tracers", std::move(tracers)}};
  if (const std::string_view file = header.Get("config.file"); !file.empty()) {
    list["config_file"] = file;
  }
  if (const ConfigSteering* const steering = mount_.steering;
      steering != nullptr) {
    list["config_dir"] = steering->folder();
    list["config_keys"] = steering->keys();
    list["config_state"] = steering->state();
    list["config_version"] = steering->version();
    Json refused = Json::object();
    for (size_t i = 0; i < kConfigRefusals; ++i) {
      const auto why = static_cast<ConfigRefusal>(i);
      if (steering->refused(why) != 0) {
        refused[std::string(ConfigRefusalName(why))] = steering->refused(why);
      }
    }
    list["config_refused"] = std::move(refused);
  }
  if (const std::string_view before = header.Get("mount.before");
      !before.empty()) {
    list["before"] = before;
  }
  return Answer(list);
}

// What tracefs-ctl found in the directory of signed configs: the version now in
// use, and a word for each that was refused.
ControlAnswer MountCommands::ConfigSeen(ControlRequest& request) {
  if (mount_.steering == nullptr) {
    return Status::Invalid("the mount's config is a file");
  }
  const Result<std::string> refused = request.Text("refused");
  if (!refused.ok()) return refused.status();
  std::string_view rest = *refused;
  while (!rest.empty()) {
    const std::string_view word = TakeUpTo(rest, ' ');
    for (size_t i = 0; i < kConfigRefusals; ++i) {
      const auto why = static_cast<ConfigRefusal>(i);
      if (ConfigRefusalName(why) == word) mount_.steering->CountRefused(why);
    }
  }
  if (request.numbers.contains("version")) {
    const Result<uint32_t> version = request.Number("version");
    if (!version.ok()) return version.status();
    mount_.steering->SetVersion(*version);
  }
  return Answer(Json::object());
}

ControlAnswer MountCommands::Explain(ControlRequest& /*request*/) {
  const format::TraceHeader& header = mount_.traced.header;
  const TracerRegistry::Entries entries = mount_.tracers.All();
  Json choices = Json::array();
  for (const ExplainedChoice& choice :
       ExplainMount(mount_.fs, mount_.traced.pipeline, mount_.transport,
                    mount_.queue_threads)) {
    choices.push_back(ChoiceJson(choice, entries));
  }
  choices.push_back(
      ChoiceJson(WhatCannotBeRecorded(mount_.tracers, entries), entries));
  for (const ExplainedChoice& choice :
       ExplainSources(mount_.traced.calls, mount_.traced.watch)) {
    choices.push_back(ChoiceJson(choice, entries));
  }
  return Answer({{"mount", header.Get("mount.point")},
                 {"source", header.Get("backing.path")},
                 {"visibility", header.Get("visibility")},
                 {"never_visible", header.Get("visibility.invisible")},
                 {"sandbox", header.Get("sandbox")},
                 {"choices", std::move(choices)},
                 {"open", OpenJson(FindOpenBefore(mount_.fs, kExamples))}});
}

ControlAnswer MountCommands::Stats(ControlRequest& /*request*/) {
  Json tracers = Json::array();
  for (const TracerStats& s : mount_.traced.pipeline.Stats()) {
    if (s.kind != TracerKind::kRules) tracers.push_back(StatsJson(s));
  }
  Json stats = {{"mount", mount_.traced.header.Get("mount.point")},
                {"inodes", mount_.fs.inodes().size()},
                {"processes", StatsJson(mount_.traced.processes.GetStats())},
                {"helpers", HelpersJson(LookAtHelpers())},
                {"tracers", std::move(tracers)}};
  if (mount_.kept != nullptr) stats["kept"] = StatsJson(mount_.kept->Totals());
  if (mount_.survives != nullptr) {
    const survive::Header& header = mount_.survives->header();
    stats["survival"] = {
        {"keeper", survive::KeeperLives(*mount_.survives)},
        {"successions", header.successions.load()},
        {"upgrades", survive::HandOverWord::Of(*mount_.survives).generation},
        {"version", kVersion},
        {"crashes", header.crashes.load()},
        {"keepers", header.keepers.load()},
        {"tracing", header.tracing.load() == survive::Tracing::kOn},
        {"refused", header.refused.load()},
        {"doubts", header.doubts.load()},
        {"longest_gap_ns", header.longest_gap_ns.load()}};
  }
  return Answer(stats);
}

// Says what a client must supply: the files of a config's outputs, and the
// numbers of the users and groups that its filters name.
ControlAnswer MountCommands::Check(ControlRequest& request) {
  NameCollector names;
  Json files = Json::array();
  if (const Result<std::string> text = request.Text("filter"); text.ok()) {
    const Result<Filter> filter =
        Filter::Compile(*text, {.file = "filter"}, names, mount_.traced.names);
    if (!filter.ok()) return filter.status();
  } else {
    const Result<Config> config = ConfigOf(request);
    if (!config.ok()) return config.status();
    const auto among = AmongOf(request, mount_.tracers.All());
    if (!among.ok()) return among.status();
    const Result<std::vector<Wish>> wishes =
        WishedFiles(*config, names, mount_.traced.names,
                    {.among = *among ? &**among : nullptr});
    if (!wishes.ok()) return wishes.status();
    files = WishesJson(*wishes);
  }
  return Answer({{"files", std::move(files)},
                 {"users", names.users()},
                 {"groups", names.groups()}});
}

ControlAnswer MountCommands::Compare(ControlRequest& request) {
  const Result<Config> config = ConfigOf(request);
  if (!config.ok()) return config.status();
  return Answer(DifferenceJson(*config, mount_.tracers.All()));
}

// --- Doing.

ControlAnswer MountCommands::Flush(ControlRequest& /*request*/) {
  return Done(mount_.traced.pipeline.FlushAll());
}

ControlAnswer MountCommands::Add(ControlRequest& request) {
  const Result<std::string> file = request.Text("file");
  for (const UniqueFd& fd : request.files) {
    struct stat st;
    if (::fstat(fd.get(), &st) != 0) return Status::System(errno, "output");
    // Each block of the trace would come back to us as a request.
    if (file.ok() && st.st_dev == mount_.device) {
      return Status::Invalid(
          *file +
          ": a file that it names lies in the mount itself; choose a place "
          "outside, or mount with this config");
    }
  }
  const Result<Config> config = ConfigOf(request);
  if (!config.ok()) return config.status();
  std::vector<UniqueFd> copies;
  if (mount_.orders != nullptr) {
    if (Status s = CheckAddSurvives(*config, *mount_.survives); !s.ok()) {
      return s;
    }
    Result<std::vector<UniqueFd>> copied = Orders::Copies(request.files);
    if (!copied.ok()) return copied.status();
    copies = *std::move(copied);
  }
  const KnownNames names = NamesOf(request);
  const auto among = AmongOf(request, mount_.tracers.All());
  if (!among.ok()) return among.status();
  Result<std::vector<TracerPlan>> plans = PlanTracers(
      *config, mount_.traced.names,
      {.users = &names,
       .first_id = mount_.orders != nullptr ? mount_.orders->next_id()
                                            : mount_.tracers.next_id(),
       .targets = {.among = *among ? &**among : nullptr},
       .files = &request.files});
  if (!plans.ok()) return plans.status();
  if (std::ranges::any_of(config->tracers, AsksToKeep)) {
    return Status::Invalid(
        "STR_KEEP takes a folder that is opened before the mount: it can be in "
        "the config of the mount only");
  }
  const WarningFacts facts = {
      .forwards_locks = mount_.fs.options().forward_locks,
      .mounted = true,
      .visibility = VisibilityName(mount_.fs.policy().visibility())};
  const Json warnings = WarningsJson(*plans, facts);
  for (TracerPlan& plan : *plans) PutWarnings(facts, &plan);
  std::vector<uint32_t> ids;
  if (Status s =
          AddPlans(*config, names, std::move(copies), *std::move(plans), &ids);
      !s.ok()) {
    return s;
  }
  std::string new_ones;
  for (const uint32_t id : ids) new_ones += ' ' + std::to_string(id);
  Notify(NoticeId::kTracers, "new tracers:" + new_ones + ", of " +
                                 request.texts.find("file")->second);
  return Answer({{"ids", ids}, {"warnings", warnings}});
}

// A later daemon is to find them as soon as all of them are there.
Status MountCommands::AddPlans(const Config& config, const KnownNames& names,
                               std::vector<UniqueFd> copies,
                               std::vector<TracerPlan> plans,
                               std::vector<uint32_t>* ids) {
  if (mount_.orders == nullptr) {
    return mount_.tracers.Add(std::move(plans), ids);
  }
  std::vector<uint32_t> planned;
  for (const TracerPlan& plan : plans) planned.push_back(plan.parts.id);
  Status status =
      mount_.orders->Prepare(config, names, std::move(copies), &plans);
  if (status.ok()) status = mount_.tracers.Add(std::move(plans), ids);
  if (status.ok()) {
    mount_.orders->Commit(planned, mount_.tracers.stays_shut());
  } else {
    mount_.orders->Drop(planned);
  }
  return status;
}

Status MountCommands::Change(uint32_t id,
                             const std::function<void(Order&)>& change,
                             const std::function<Status()>& act) {
  return mount_.orders == nullptr ? act()
                                  : mount_.orders->Change(id, change, act);
}

// What a later daemon would do again is known before it is done, or it could go
// on with what the trace says has ended; but for a start, which the trace would
// not tell of.
Status MountCommands::Steer(std::string_view command, uint32_t id,
                            const std::function<Status()>& act) {
  if (mount_.orders == nullptr) return act();
  if (command == "stop") {
    return Change(
        id, [](Order& order) { order.suspended = true; }, act);
  }
  if (command == "start") {
    if (Status s = act(); !s.ok()) return s;
    return Change(
        id, [](Order& order) { order.suspended = false; },
        [] { return Status::Ok(); });
  }
  // Where its end cannot be written it is gone all the same.
  Status ended;
  const Status done = Change(
      id, [](Order& order) { order.removed = true; },
      [&] {
        ended = act();
        return mount_.tracers.All().contains(id) ? ended : Status::Ok();
      });
  if (!done.ok()) return done;
  mount_.orders->Forget(id);
  return ended;
}

ControlAnswer MountCommands::SetFilter(ControlRequest& request) {
  const Result<uint32_t> id = request.Number("tracer");
  if (!id.ok()) return id.status();
  const Result<std::string> text = request.Text("filter");
  if (!text.ok()) return text.status();
  const Result<Filter> filter = Filter::Compile(
      *text, {.file = "filter"}, NamesOf(request), mount_.traced.names);
  if (!filter.ok()) return filter.status();
  const Status done = Change(
      *id,
      [&](Order& order) {
        order.filter = *text;
        order.filter_names = NamesOf(request);
      },
      [&] { return mount_.tracers.SetFilter(*id, *filter); });
  if (!done.ok()) return done;
  Notify(NoticeId::kTracers,
         "tracer " + std::to_string(*id) + ": another filter");
  return Answer({{"warnings", filter->warnings()}});
}

ControlAnswer MountCommands::Snapshot(ControlRequest& request) {
  const Result<uint32_t> id = request.Number("tracer");
  if (!id.ok()) return id.status();
  const Result<std::string> path = mount_.traced.snapshots.Take(*id, "command");
  if (!path.ok()) return path.status();
  return Answer({{"file", *path}});
}

ControlAnswer MountCommands::Tail(ControlRequest& request) {
  return Listen(request, [](const Filter& filter) {
    return BeginOwnParts(TracerKind::kTail, "tail", filter);
  });
}

ControlAnswer MountCommands::Watch(ControlRequest& request) {
  uint64_t every_ms = kWatchEveryMs;
  if (request.numbers.contains("every_ms")) {
    const Result<uint32_t> given = request.Number("every_ms");
    if (!given.ok()) return given.status();
    every_ms = *given;
  }
  if (every_ms < kMinWatchEveryMs || every_ms > kMaxWatchEveryMs) {
    return Status::Invalid("request: every_ms is from " +
                           std::to_string(kMinWatchEveryMs) + " to " +
                           std::to_string(kMaxWatchEveryMs));
  }
  std::string counted;
  if (request.texts.contains("aggregate")) {
    Result<std::string> given = request.Text("aggregate");
    if (!given.ok()) return given.status();
    counted = *std::move(given);
  }
  return Listen(request, [&](const Filter& filter) {
    return BeginWatchParts("watch", filter, every_ms * kNsPerMs, counted);
  });
}

// A tracer whose output is the rest of this connection.
ControlAnswer MountCommands::Listen(
    ControlRequest& request,
    const std::function<Result<TracerParts>(const Filter&)>& begin) {
  const TracerRegistry::Entries entries = mount_.tracers.All();
  const auto tails = std::count_if(
      entries.begin(), entries.end(),
      [](const auto& entry) { return entry.second.kind == TracerKind::kTail; });
  if (static_cast<size_t>(tails) >= kMaxTails) {
    return Status::Invalid("more than " + std::to_string(kMaxTails) +
                           " clients listen already");
  }
  std::string text;
  if (const auto found = request.texts.find("filter");
      found != request.texts.end()) {
    text = found->second;
  }
  const Result<Filter> filter = Filter::Compile(
      text, {.file = "filter"}, NamesOf(request), mount_.traced.names);
  if (!filter.ok()) return filter.status();
  Result<TracerParts> parts = begin(*filter);
  if (!parts.ok()) return parts.status();
  const auto queue = std::make_shared<BlockQueue>(kTailBytes);
  PutDriver(parts->name, MakeBlockQueueOutput(queue), &*parts);
  std::vector<TracerPlan> plans(1);
  plans[0].parts = *std::move(parts);
  plans[0].filter = *filter;
  std::vector<uint32_t> ids;
  if (Status s = mount_.tracers.Add(std::move(plans), &ids); !s.ok()) return s;

  ControlAnswer answer =
      Answer({{"tracer", ids[0]}, {"warnings", filter->warnings()}});
  answer.stream =
      MakeTailStream(queue, [&tracers = mount_.tracers, id = ids[0]] {
        static_cast<void>(tracers.Remove(id));
      });
  return answer;
}

// The client sees the end of the connection where it goes well.
ControlAnswer MountCommands::Upgrade(ControlRequest& /*request*/) {
  if (!mount_.upgrade) {
    return Status::Invalid(
        "the program of this mount changes when it is mounted again: it was "
        "mounted without --survive yes");
  }
  return Done(mount_.upgrade());
}

// The rest of this connection is one line, when all is done.
ControlAnswer MountCommands::Unmount(ControlRequest& /*request*/) {
  const auto notice = std::make_shared<EndNotice>();
  {
    // Before: the end may come at once.
    std::lock_guard lock(mu_);
    std::erase_if(end_notices_, [](const auto& one) { return one.expired(); });
    end_notices_.push_back(notice);
  }
  Json result = {{"mount", mount_.traced.header.Get("mount.point")}};
  if (Status s = mount_.unmount(); s.error() == EPIPE) {
    result["by_client"] = true;  // the watchdog is gone
  } else if (!s.ok()) {
    return s;
  }
  ControlAnswer answer = Answer(result);
  answer.stream = notice;
  return answer;
}

void MountCommands::TellEnd(const std::string& line) {
  std::lock_guard lock(mu_);
  for (const std::weak_ptr<EndNotice>& one : end_notices_) {
    if (const auto notice = one.lock()) notice->Tell(line);
  }
}

}  // namespace tracefs
