#include "tracefs/mount/mount_control.h"

#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "drivers/assembly/table.h"
#include "tracefs/base/clock.h"
#include "tracefs/base/printable.h"
#include "tracefs/control/tail_stream.h"
#include "tracefs/export/escape.h"
#include "tracefs/export/feed_parts.h"
#include "tracefs/fs/open_before.h"
#include "tracefs/mount/explain.h"
#include "tracefs/mount/request_names.h"
#include "tracefs/tracers/parts.h"
#include "tracefs/tracers/plan_facts.h"
#include "tracefs/tracers/warnings.h"

namespace tracefs {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kExamples = 20;
// Of each tracer, unless a client asks for more.
constexpr size_t kAlarmsToTell = 16;
// Of blocks that wait for one client; more than a terminal takes in a second.
constexpr size_t kTailBytes = size_t{8} << 20;

// File names and filters need not be UTF-8.
ControlAnswer Answer(const Json& json) {
  return ControlAnswer(JsonWithoutHidden(
      json.dump(-1, ' ', false, Json::error_handler_t::replace)));
}

std::string Trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return "";
  return std::string(
      text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1));
}

Json ToJson(const TracerStats& s) {
  Json lost = Json::object();
  for (size_t r = 0; r < kLossReasonCount; ++r) {
    if (s.lost[r] != 0) {
      lost[std::string(LossReasonName(static_cast<LossReason>(r)))] = s.lost[r];
    }
  }
  Json ops = Json::object();
  for (size_t op = 0; op < kOpCount; ++op) {
    if (s.by_op[op] != 0) {
      ops[std::string(OpName(static_cast<Op>(op)))] = s.by_op[op];
    }
  }
  // What a stage did alone is what the one after it did not.
  Json stages = Json::array();
  for (size_t i = 0; i < s.stages.size(); ++i) {
    const TracerStats::Stage& stage = s.stages[i];
    const bool last = i + 1 == s.stages.size();
    const uint64_t later = last ? 0 : s.stages[i + 1].ns;
    Json j = {{"name", stage.name},
              {"blocks", stage.blocks},
              {"bytes_in", stage.bytes}};
    if (!last) j["bytes_out"] = s.stages[i + 1].bytes;
    j["refused"] = stage.refused;
    j["ns"] = stage.ns > later ? stage.ns - later : 0;
    if (stage.queue) {
      j["queue"] = {{"blocks", stage.queue->blocks},
                    {"bytes", stage.queue->bytes},
                    {"limit_bytes", stage.queue->limit_bytes},
                    {"events", stage.queue->events}};
      if (stage.queue->overwritten != 0) {
        j["queue"]["overwritten"] = stage.queue->overwritten;
      }
    }
    stages.push_back(std::move(j));
  }
  const auto average = [](uint64_t ns, uint64_t samples) {
    return samples == 0
               ? Json(nullptr)
               : Json(static_cast<double>(ns) / static_cast<double>(samples));
  };
  Json j = {{"id", s.id},
            {"name", s.name},
            {"state", s.running ? "running" : "stopped"},
            {"seen", s.seen},
            {"matched", s.matched},
            {"encoded", s.encoded},
            {"counted", s.counted},
            {"written", s.written},
            {"queued", s.Queued()},
            {"delivered", s.written - s.Queued()},
            {"lost", std::move(lost)},
            {"blocks", s.blocks},
            {"filter_ns", average(s.filter_ns, s.filter_samples)},
            {"encode_ns", average(s.encode_ns, s.encode_samples)},
            {"stages", std::move(stages)},
            {"ops", std::move(ops)}};
  if (!s.output_error.ok()) j["error"] = s.output_error.message();
  return j;
}

// Words of warning about tracers that were just added.
Json Warnings(const std::vector<TracerPlan>& plans, const WarningFacts& facts) {
  Json warnings = Json::array();
  for (const TracerPlan& plan : plans) {
    const bool rules = plan.rules_of != 0;
    const std::string tracer =
        (rules ? "rules of tracer " : "tracer ") +
        std::to_string(rules ? plan.rules_of : plan.parts.id) + ": ";
    for (const std::string& warning : WarningsOf(plan, facts)) {
      warnings.push_back(tracer + warning);
    }
  }
  return warnings;
}

// The tracer that a command names.
Result<uint32_t> TracerId(const ControlRequest& request) {
  const Result<uint32_t> id = request.Number("tracer");
  if (id.ok() && FeedsRules(*id)) {
    return Status::Invalid("no tracer " + std::to_string(*id));
  }
  return id;
}

const char* ActionName(RuleAction::Kind kind) {
  switch (kind) {
    case RuleAction::Kind::kSnapshot:
      return "snapshot";
    case RuleAction::Kind::kRaise:
      return "raise";
    case RuleAction::Kind::kStart:
      return "start";
    case RuleAction::Kind::kStop:
      return "stop";
  }
  return "";
}

// What the trace says of an alarm; views point into all three.
format::AlarmRecord AlarmOf(const Rule& rule, const Alarm& alarm,
                            const std::vector<std::string>& actions) {
  return {.rule = static_cast<uint32_t>(alarm.rule + 1),
          .title = rule.title,
          .key = RuleKeyName(rule.key),
          .key_pid = alarm.key_pid,
          .other = alarm.other,
          .count = alarm.count,
          .limit = rule.limit,
          .window_ns = rule.window_ns,
          .windows = rule.windows,
          .op = alarm.op,
          .actions = {actions.begin(), actions.end()}};
}

bool CountsTrees(const std::shared_ptr<RuleRunner>& runner) {
  return runner != nullptr && RuleEngine::CountsTrees(runner->rules());
}

// "snapshot 2: done"
std::vector<std::string> Outcomes(const Rule& rule,
                                  const std::vector<Status>& outcomes) {
  std::vector<std::string> texts;
  for (size_t i = 0; i < outcomes.size(); ++i) {
    texts.push_back(std::string(ActionName(rule.actions[i].kind)) + ' ' +
                    std::to_string(rule.actions[i].tracer_id) + ": " +
                    (outcomes[i].ok() ? "done" : outcomes[i].message()));
  }
  return texts;
}

Json ToJson(const RuleRunner::Fired& fired, const Rule& rule) {
  const Alarm& alarm = fired.alarm;
  Json actions = Json::array();
  for (size_t i = 0; i < fired.outcomes.size(); ++i) {
    actions.push_back(
        {{"action", ActionName(rule.actions[i].kind)},
         {"tracer", rule.actions[i].tracer_id},
         {"outcome",
          fired.outcomes[i].ok() ? "done" : fired.outcomes[i].message()}});
  }
  return {{"number", fired.number},
          {"time", fired.real_ns},
          {"key", Utf8Text(alarm.key)},
          {"count", alarm.count},
          {"op", OpName(alarm.op)},
          {"pid", alarm.pid},
          {"uid", alarm.uid},
          {"comm", Utf8Text(alarm.command)},
          {"path", Utf8Text(alarm.path)},
          {"actions", std::move(actions)}};
}

Json ToJson(const RuleRunner& runner, const RuleRunner::Report& report,
            size_t number, bool stopped, uint64_t now, size_t most) {
  const Rule& rule = runner.rules()[number];
  const RuleEngine::Status& status = report.rules[number];
  Json alarms = Json::array();
  for (const RuleRunner::Fired& fired : report.fired) {
    if (most-- == 0) break;  // of all rules of the tracer
    if (fired.alarm.rule == number) alarms.push_back(ToJson(fired, rule));
  }
  return {{"tracer", runner.tracer()},
          {"rule", number + 1},
          {"title", rule.title},
          {"text", rule.text},
          {"state", stopped                       ? "stopped"
                    : now < status.holds_until_ns ? "alarm"
                                                  : "calm"},
          {"matched", status.matched},
          {"missed", report.missed},
          {"alarms", status.alarms},
          {"suppressed", status.suppressed},
          {"told", report.alarms},
          {"last", std::move(alarms)}};
}

}  // namespace

struct MountControl::Command {
  std::string_view name;
  ControlAnswer (MountControl::*run)(ControlRequest&);
  bool quick;
  std::initializer_list<std::string_view> members;
};

const MountControl::Command* MountControl::FindCommand(std::string_view name) {
  static const Command commands[] = {
      {"list", &MountControl::List, true, {}},
      {"explain", &MountControl::Explain, true, {}},
      {"stats", &MountControl::Stats, true, {}},
      {"flush", &MountControl::Flush, false, {}},
      {"check",
       &MountControl::Check,
       false,
       {"config", "file", "filter", "users", "groups"}},
      {"add",
       &MountControl::AddConfig,
       false,
       {"config", "file", "users", "groups"}},
      {"remove", &MountControl::Remove, false, {"tracer"}},
      {"stop", &MountControl::Stop, false, {"tracer"}},
      {"start", &MountControl::Start, false, {"tracer"}},
      {"set-filter",
       &MountControl::SetFilter,
       false,
       {"tracer", "filter", "users", "groups"}},
      {"snapshot", &MountControl::Snapshot, false, {"tracer"}},
      {"rules", &MountControl::Rules, true, {"last"}},
      {"tail", &MountControl::Tail, false, {"filter", "users", "groups"}},
      {"unmount", &MountControl::Unmount, false, {}},
  };
  for (const Command& command : commands) {
    if (command.name == name) return &command;
  }
  return nullptr;
}

bool MountControl::IsQuick(std::string_view command) const {
  const Command* known = FindCommand(command);
  return known == nullptr || known->quick;
}

ControlAnswer MountControl::Handle(ControlRequest& request) {
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

// --- Tracers that come and go.

// The kernel may keep other things from now on, and forgets what it has.
void MountControl::Changed() {
  if (mount_.forget_names) mount_.forget_names();
}

Status MountControl::AddFirst(std::vector<TracerPlan> plans) {
  return Add(std::move(plans), nullptr);
}

// Starts all, or none.
Status MountControl::Add(std::vector<TracerPlan> plans,
                         std::vector<uint32_t>* ids) {
  std::vector<TracerParts> parts;
  std::map<uint32_t, Known> added;
  for (TracerPlan& plan : plans) {
    for (const auto& [key, value] : mount_.header.properties) {
      plan.parts.header.Set(key, value);
    }
    for (const OutputFileId& id : plan.files) {
      mount_.fs.inodes().AddOutput(static_cast<dev_t>(id.device), id.inode);
    }
    const format::TraceHeader& header = plan.parts.header;
    Known& known = added[plan.parts.id];
    known.filter = Trimmed(header.Get("filter.text"));
    known.drivers = header.Get("drivers");
    known.output = header.Get("output.chain");
    known.config = header.Get("config.text");
    known.needs_callers = NeedCallers({&plan, 1});
    known.files = plan.files;
    known.tail = plan.parts.id >= kFirstTailId;
    if (plan.file_change != nullptr) {
      *plan.file_change = [this, id = plan.parts.id](const OutputFileId& file,
                                                     bool written) {
        ChangeFile(id, file, written);
      };
    }
    if (plan.flight != nullptr) {
      mount_.snapshots.Add(plan.parts.id, plan.flight);
    }
    known.flight = plan.flight != nullptr;
    known.compiled = std::move(plan.filter);
    if (plan.rules_of != 0) {
      known.rules =
          std::make_shared<RuleRunner>(plan.rules_of, std::move(plan.rules),
                                       static_cast<AlarmHandler&>(*this));
      PutDriver("rules", known.rules->MakeOutput(), &plan.parts);
    } else if (!known.tail) {
      next_id_ = std::max(next_id_, plan.parts.id + 1);
      if (ids != nullptr) ids->push_back(plan.parts.id);
    }
    parts.push_back(std::move(plan.parts));
  }
  for (const auto& [id, known] : added) {
    if (known.needs_callers) mount_.processes.Start();
    if (CountsTrees(known.rules)) mount_.processes.KeepParents(true);
  }
  std::vector<uint32_t> numbers;
  for (const auto& [id, known] : added) numbers.push_back(id);
  // A rule that fires at once finds all tracers known.
  std::vector<std::shared_ptr<RuleRunner>> runners;
  for (const auto& [id, known] : added) {
    if (known.rules != nullptr) runners.push_back(known.rules);
  }
  {
    // Before they run: an output may go on in another file at once.
    std::lock_guard lock(known_mu_);
    known_.merge(added);
  }
  if (Status s = mount_.pipeline.Add(std::move(parts)); !s.ok()) {
    for (const uint32_t id : numbers) Release(id);
    return s;
  }
  for (const std::shared_ptr<RuleRunner>& runner : runners) runner->Start();
  Changed();
  return Status::Ok();
}

Status MountControl::Forget(uint32_t id, std::string_view end_reason) {
  const Status status = mount_.pipeline.Remove(id, end_reason);
  Release(id);
  return status;
}

void MountControl::ChangeFile(uint32_t id, const OutputFileId& file,
                              bool written) {
  InodeTable& inodes = mount_.fs.inodes();
  std::lock_guard lock(known_mu_);
  const auto found = known_.find(id);
  if (found == known_.end()) return;  // ends this moment
  std::vector<OutputFileId>& files = found->second.files;
  if (written) {
    inodes.AddOutput(static_cast<dev_t>(file.device), file.inode);
    files.push_back(file);
  } else {
    inodes.RemoveOutput(static_cast<dev_t>(file.device), file.inode);
    files.erase(std::remove(files.begin(), files.end(), file), files.end());
  }
}

// Gives back what was taken for a tracer.
void MountControl::Release(uint32_t id) {
  mount_.snapshots.Remove(id);
  Known known;
  {
    std::lock_guard lock(known_mu_);
    const auto found = known_.find(id);
    if (found == known_.end()) return;
    known = std::move(found->second);
    known_.erase(found);
  }
  if (known.needs_callers) mount_.processes.Stop();
  if (CountsTrees(known.rules)) mount_.processes.KeepParents(false);
  for (const OutputFileId& file : known.files) {
    mount_.fs.inodes().RemoveOutput(static_cast<dev_t>(file.device),
                                    file.inode);
  }
}

// --- Commands.

ControlAnswer MountControl::List(ControlRequest& /*request*/) {
  const std::vector<TracerStats> stats = mount_.pipeline.Stats();
  Json tracers = Json::array();
  std::lock_guard lock(known_mu_);
  for (const TracerStats& s : stats) {
    const auto found = known_.find(s.id);
    if (found == known_.end()) continue;  // comes or goes this moment
    const Known& known = found->second;
    if (known.rules != nullptr) continue;
    tracers.push_back({{"id", s.id},
                       {"name", s.name},
                       {"state", s.running ? "running" : "stopped"},
                       {"kind", known.tail ? "tail" : "tracer"},
                       {"filter", known.filter},
                       {"drivers", known.drivers},
                       {"output", known.output},
                       {"config", known.config},
                       {"written", s.written},
                       {"lost", s.TotalLost()}});
  }
  Json list = {{"mount", mount_.header.Get("mount.point")},
               {"source", mount_.header.Get("backing.path")},
               {"tracers", std::move(tracers)}};
  if (const std::string_view before = mount_.header.Get("mount.before");
      !before.empty()) {
    list["before"] = before;
  }
  return Answer(list);
}

ControlAnswer MountControl::Explain(ControlRequest& /*request*/) {
  Json choices = Json::array();
  for (const ExplainedChoice& c :
       ExplainMount(mount_.fs, mount_.pipeline, mount_.transport)) {
    Json causes = Json::array();
    for (const ExplainedChoice::Cause& cause : c.causes) {
      // "rules" of the tracer they belong to.
      const uint32_t id = cause.who.tracer;
      causes.push_back({{"tracer", FeedsRules(id) ? id - kFirstRulesId : id},
                        {"name", cause.who.name},
                        {"op", OpName(cause.op)},
                        {"filter", cause.who.filter}});
    }
    choices.push_back({{"subject", c.subject},
                       {"choice", c.choice},
                       {"causes", std::move(causes)},
                       {"why", c.why},
                       {"hides", c.hides},
                       {"for_good", c.for_good}});
  }
  const OpenBefore before = FindOpenBefore(mount_.fs, kExamples);
  Json examples = Json::array();
  for (const OpenBefore::File& file : before.examples) {
    examples.push_back({{"path", file.path},
                        {"mode", IoModeName(file.mode)},
                        {"now", IoModeName(file.now)}});
  }
  return Answer({{"mount", mount_.header.Get("mount.point")},
                 {"source", mount_.header.Get("backing.path")},
                 {"visibility", mount_.header.Get("visibility")},
                 {"never_visible", mount_.header.Get("visibility.invisible")},
                 {"sandbox", mount_.header.Get("sandbox")},
                 {"choices", std::move(choices)},
                 {"open",
                  {{"files", before.open},
                   {"opened_before", before.different},
                   {"examples", std::move(examples)}}}});
}

ControlAnswer MountControl::Stats(ControlRequest& /*request*/) {
  Json tracers = Json::array();
  for (const TracerStats& s : mount_.pipeline.Stats()) {
    if (FeedsRules(s.id)) continue;
    tracers.push_back(ToJson(s));
  }
  const ProcessTable::Stats processes = mount_.processes.GetStats();
  return Answer({{"mount", mount_.header.Get("mount.point")},
                 {"inodes", mount_.fs.inodes().size()},
                 {"processes",
                  {{"reads", processes.reads},
                   {"gone", processes.gone},
                   {"changes", processes.changes},
                   {"losses", processes.losses},
                   {"events", processes.events}}},
                 {"tracers", std::move(tracers)}});
}

ControlAnswer MountControl::Flush(ControlRequest& /*request*/) {
  if (Status s = mount_.pipeline.FlushAll(); !s.ok()) return s;
  return Answer(Json::object());
}

// Says what a client must bring along: the files of a config's outputs, and the
// numbers of the users and groups that its filters name.
ControlAnswer MountControl::Check(ControlRequest& request) {
  NameCollector names;
  std::vector<Wish> wishes;
  if (const Result<std::string> text = request.Text("filter"); text.ok()) {
    const Result<Filter> filter =
        Filter::Compile(*text, {.file = "filter"}, names, mount_.names);
    if (!filter.ok()) return filter.status();
  } else {
    const Result<std::string> source = request.Text("config");
    const Result<std::string> file = request.Text("file");
    if (!source.ok()) return source.status();
    if (!file.ok()) return file.status();
    const Result<Config> config = ParseConfig(*source, *file, KnownNames());
    if (!config.ok()) return config.status();
    Result<std::vector<Wish>> wished =
        WishedFiles(*config, names, mount_.names);
    if (!wished.ok()) return wished.status();
    wishes = std::move(*wished);
  }
  Json files = Json::array();
  for (const Wish& wish : wishes) {
    Json file = {{"path", wish.path},
                 {"kind", WishKindName(wish.kind)},
                 {"sync", wish.sync}};
    if (!IsUtf8(wish.path)) {
      file["path_bytes"] =
          std::vector<uint8_t>(wish.path.begin(), wish.path.end());
    }
    files.push_back(std::move(file));
  }
  return Answer({{"files", std::move(files)},
                 {"users", names.users()},
                 {"groups", names.groups()}});
}

ControlAnswer MountControl::AddConfig(ControlRequest& request) {
  const Result<std::string> source = request.Text("config");
  const Result<std::string> file = request.Text("file");
  if (!source.ok()) return source.status();
  if (!file.ok()) return file.status();
  for (const UniqueFd& fd : request.files) {
    struct stat st;
    if (::fstat(fd.get(), &st) != 0) return Status::System(errno, "output");
    // Each block of the trace would come back to us as a request.
    if (st.st_dev == mount_.device) {
      return Status::Invalid(
          *file +
          ": a file that it names lies in the mount itself; choose a place "
          "outside, or mount with this config");
    }
  }
  const Result<Config> config = ParseConfig(*source, *file, KnownNames());
  if (!config.ok()) return config.status();
  const RequestNames names(request);
  Result<std::vector<TracerPlan>> plans = PlanTracers(
      *config, mount_.names,
      {.users = &names, .first_id = next_id_, .files = &request.files});
  if (!plans.ok()) return plans.status();
  const WarningFacts facts = {
      .forwards_locks = mount_.fs.options().forward_locks, .mounted = true};
  const Json warnings = Warnings(*plans, facts);
  for (TracerPlan& plan : *plans) PutWarnings(facts, &plan);
  std::vector<uint32_t> ids;
  if (Status s = Add(std::move(*plans), &ids); !s.ok()) return s;
  return Answer({{"ids", ids}, {"warnings", warnings}});
}

ControlAnswer MountControl::Remove(ControlRequest& request) {
  const Result<uint32_t> id = TracerId(request);
  if (!id.ok()) return id.status();
  StopRulesOf(*id);
  std::lock_guard steer(steer_mu_);
  if (Status s = Forget(*id, "stop"); !s.ok()) return s;
  return Answer(Json::object());
}

ControlAnswer MountControl::Stop(ControlRequest& request) {
  const Result<uint32_t> id = TracerId(request);
  if (!id.ok()) return id.status();
  std::lock_guard steer(steer_mu_);
  if (Status s = Rest(*id); !s.ok()) return s;
  return Answer(Json::object());
}

ControlAnswer MountControl::Start(ControlRequest& request) {
  const Result<uint32_t> id = TracerId(request);
  if (!id.ok()) return id.status();
  std::lock_guard steer(steer_mu_);
  if (Status s = Run(*id); !s.ok()) return s;
  return Answer(Json::object());
}

ControlAnswer MountControl::SetFilter(ControlRequest& request) {
  const Result<uint32_t> id = TracerId(request);
  if (!id.ok()) return id.status();
  const Result<std::string> text = request.Text("filter");
  if (!text.ok()) return text.status();
  Result<Filter> filter = Filter::Compile(*text, {.file = "filter"},
                                          RequestNames(request), mount_.names);
  if (!filter.ok()) return filter.status();
  std::lock_guard steer(steer_mu_);
  if (Status s = SwapFilter(*id, *filter); !s.ok()) return s;
  std::lock_guard lock(known_mu_);
  if (const auto found = known_.find(*id); found != known_.end()) {
    found->second.filter = Trimmed(*text);
    found->second.compiled = *filter;
  }
  return Answer({{"warnings", filter->warnings()}});
}

// --- What is done to one tracer, by a command or by a rule. With steer_mu_.

// Its own filter stays what it was.
Status MountControl::SwapFilter(uint32_t id, const Filter& filter) {
  const std::string dag = filter.general().Dump();
  bool needs_callers = false;
  for (size_t op = 0; op < kOpCount; ++op) {
    needs_callers |= filter.Needs(static_cast<Op>(op)).caller;
  }
  if (Status s = mount_.pipeline.SetFilter(id, std::make_unique<Filter>(filter),
                                           filter.text(), dag);
      !s.ok()) {
    return s;
  }
  {
    std::lock_guard lock(known_mu_);
    if (const auto found = known_.find(id); found != known_.end()) {
      // It is not raised any more; who raises it says so afterwards.
      found->second.raised_until_ns = 0;
      if (needs_callers && !found->second.needs_callers) {
        found->second.needs_callers = true;
        mount_.processes.Start();
      }
    }
  }
  Changed();
  return Status::Ok();
}

Status MountControl::Run(uint32_t id) {
  if (Status s = mount_.pipeline.Resume(id); !s.ok()) return s;
  bool rules = false;
  {
    std::lock_guard lock(known_mu_);
    if (const auto found = known_.find(id); found != known_.end()) {
      found->second.stopped = false;
    }
    rules = known_.contains(kFirstRulesId + id);
  }
  Changed();
  return rules ? mount_.pipeline.Resume(kFirstRulesId + id) : Status::Ok();
}

Status MountControl::Rest(uint32_t id) {
  if (Status s = mount_.pipeline.Suspend(id); !s.ok()) return s;
  bool rules = false;
  {
    std::lock_guard lock(known_mu_);
    if (const auto found = known_.find(id); found != known_.end()) {
      found->second.stopped = true;
    }
    rules = known_.contains(kFirstRulesId + id);
  }
  return rules ? mount_.pipeline.Suspend(kFirstRulesId + id) : Status::Ok();
}

bool MountControl::Find(uint32_t id, Known* known) {
  std::lock_guard lock(known_mu_);
  const auto found = known_.find(id);
  if (found == known_.end()) return false;
  *known = found->second;
  return true;
}

// --- Rules.

// The rules of a tracer that is about to end, after they have looked at all
// that has happened. Without steer_mu_: they may be waiting for it.
void MountControl::StopRulesOf(uint32_t id) {
  Known known;
  if (!Find(kFirstRulesId + id, &known)) return;
  static_cast<void>(Forget(kFirstRulesId + id, "stop"));
  known.rules->Join();
  EndRaises([id](const Known& other) { return other.raised_by == id; });
}

void MountControl::StopRules() {
  std::vector<uint32_t> ids;
  {
    std::lock_guard lock(known_mu_);
    for (const auto& [id, known] : known_) {
      if (known.rules != nullptr) ids.push_back(id - kFirstRulesId);
    }
  }
  for (const uint32_t id : ids) StopRulesOf(id);
}

std::vector<Status> MountControl::OnAlarm(uint32_t tracer, const Rule& rule,
                                          const Alarm& alarm) {
  std::vector<Status> outcomes;
  for (const RuleAction& action : rule.actions) {
    std::lock_guard steer(steer_mu_);
    outcomes.push_back(Act(tracer, action));
  }
  const std::vector<std::string> actions = Outcomes(rule, outcomes);
  static_cast<void>(mount_.pipeline.Tell(tracer, AlarmOf(rule, alarm, actions),
                                         alarm.values));
  return outcomes;
}

uint32_t MountControl::ParentOf(uint32_t pid) {
  return mount_.processes.ParentOf(pid, MonotonicNs());
}

Status MountControl::Act(uint32_t by, const RuleAction& action) {
  switch (action.kind) {
    case RuleAction::Kind::kSnapshot:
      return mount_.snapshots.Take(action.tracer_id, "rule").status();
    case RuleAction::Kind::kRaise:
      return Raise(by, action);
    case RuleAction::Kind::kStart:
      return Run(action.tracer_id);
    case RuleAction::Kind::kStop:
      return Rest(action.tracer_id);
  }
  return Status::Ok();
}

// The tracer runs with another filter for a while.
Status MountControl::Raise(uint32_t by, const RuleAction& action) {
  const uint32_t id = action.tracer_id;
  Known known;
  if (!Find(id, &known)) {
    return Status::Invalid("no tracer " + std::to_string(id));
  }
  if (Status s = SwapFilter(id, *action.filter); !s.ok()) return s;
  if (Status s = mount_.pipeline.Resume(id); !s.ok()) return s;
  Changed();
  std::lock_guard lock(known_mu_);
  if (const auto found = known_.find(id); found != known_.end()) {
    found->second.raised_until_ns = MonotonicNs() + action.duration_ns;
    found->second.raised_by = by;
  }
  return Status::Ok();
}

void MountControl::OnTick() {
  const uint64_t now = MonotonicNs();
  EndRaises([now](const Known& known) { return known.raised_until_ns <= now; });
}

// Tracers that are raised and for which `is_over` is true become what they
// were.
void MountControl::EndRaises(const std::function<bool(const Known&)>& is_over) {
  std::lock_guard steer(steer_mu_);
  std::map<uint32_t, Known> over;
  {
    std::lock_guard lock(known_mu_);
    for (const auto& [id, known] : known_) {
      if (known.raised_until_ns != 0 && is_over(known)) over[id] = known;
    }
  }
  for (const auto& [id, known] : over) {
    // What it was raised for would soon be overwritten.
    if (known.flight) {
      static_cast<void>(mount_.snapshots.Take(id, "rule"));
    }
    static_cast<void>(SwapFilter(id, *known.compiled));
    if (known.stopped) static_cast<void>(mount_.pipeline.Suspend(id));
  }
}

std::vector<RuleTotals> MountControl::TotalsOfRules() {
  const uint64_t now = MonotonicNs();
  std::vector<RuleTotals> totals;
  std::lock_guard lock(known_mu_);
  for (const auto& [id, known] : known_) {
    if (known.rules == nullptr) continue;
    const RuleRunner& runner = *known.rules;
    const RuleRunner::Report report = runner.report();
    for (size_t i = 0; i < runner.rules().size(); ++i) {
      totals.push_back({.tracer = runner.tracer(),
                        .number = i + 1,
                        .title = runner.rules()[i].title,
                        .matched = report.rules[i].matched,
                        .missed = report.missed,
                        .alarms = report.rules[i].alarms,
                        .in_alarm = now < report.rules[i].holds_until_ns});
    }
  }
  return totals;
}

ControlAnswer MountControl::Rules(ControlRequest& request) {
  size_t most = kAlarmsToTell;
  if (request.numbers.contains("last")) {
    const Result<uint32_t> last = request.Number("last");
    if (!last.ok()) return last.status();
    most = *last;
  }
  const uint64_t now = MonotonicNs();
  const ClockPair clock = ClockPair::Now();
  Json rules = Json::array();
  Json raised = Json::array();
  std::lock_guard lock(known_mu_);
  for (const auto& [id, known] : known_) {
    if (known.raised_until_ns != 0) {
      raised.push_back({{"tracer", id},
                        {"by", known.raised_by},
                        {"until", clock.ToReal(known.raised_until_ns)}});
    }
    if (known.rules == nullptr) continue;
    const RuleRunner& runner = *known.rules;
    const RuleRunner::Report report = runner.report();
    const auto host = known_.find(runner.tracer());
    const bool stopped = host != known_.end() && host->second.stopped;
    for (size_t i = 0; i < runner.rules().size(); ++i) {
      rules.push_back(ToJson(runner, report, i, stopped, now, most));
    }
  }
  return Answer({{"mount", mount_.header.Get("mount.point")},
                 {"rules", std::move(rules)},
                 {"raised", std::move(raised)}});
}

ControlAnswer MountControl::Snapshot(ControlRequest& request) {
  const Result<uint32_t> id = TracerId(request);
  if (!id.ok()) return id.status();
  const Result<std::string> path = mount_.snapshots.Take(*id, "command");
  if (!path.ok()) return path.status();
  return Answer({{"file", *path}});
}

// A tracer whose output is the rest of this connection.
ControlAnswer MountControl::Tail(ControlRequest& request) {
  {
    std::lock_guard lock(known_mu_);
    const auto tails =
        std::count_if(known_.begin(), known_.end(),
                      [](const auto& known) { return known.second.tail; });
    if (static_cast<size_t>(tails) >= kMaxTails) {
      return Status::Invalid("more than " + std::to_string(kMaxTails) +
                             " clients listen already");
    }
  }
  std::string text;
  if (const auto found = request.texts.find("filter");
      found != request.texts.end()) {
    text = found->second;
  }
  Result<Filter> filter = Filter::Compile(text, {.file = "filter"},
                                          RequestNames(request), mount_.names);
  if (!filter.ok()) return filter.status();

  const Json warnings = filter->warnings();
  Result<TracerParts> parts =
      BeginParts({.kind = TracerKind::kTail,
                  .name = "tail",
                  .drivers = std::string(kDefaultAssembly),
                  .output_chain = "tail"},
                 *std::move(filter));
  if (!parts.ok()) return parts.status();
  const uint32_t id = next_tail_id_++;
  SetId(id, &*parts);
  parts->assembly.push_back(MakeDefaultAssembly());
  const auto queue = std::make_shared<BlockQueue>(kTailBytes);
  PutDriver("tail", MakeBlockQueueOutput(queue), &*parts);
  std::vector<TracerPlan> plans(1);
  plans[0].parts = *std::move(parts);
  if (Status s = Add(std::move(plans), nullptr); !s.ok()) return s;

  ControlAnswer answer = Answer({{"tracer", id}, {"warnings", warnings}});
  answer.stream = MakeTailStream(
      queue, [this, id] { static_cast<void>(Forget(id, "stop")); });
  return answer;
}

// The rest of this connection is one line, when all is done.
ControlAnswer MountControl::Unmount(ControlRequest& /*request*/) {
  const auto notice = std::make_shared<EndNotice>();
  {
    // Before: the end may come at once.
    std::lock_guard lock(known_mu_);
    std::erase_if(end_notices_, [](const auto& one) { return one.expired(); });
    end_notices_.push_back(notice);
  }
  if (Status s = mount_.unmount(); !s.ok()) return s;
  ControlAnswer answer = Answer({{"mount", mount_.header.Get("mount.point")}});
  answer.stream = notice;
  return answer;
}

void MountControl::TellEnd(const std::string& line) {
  std::lock_guard lock(known_mu_);
  for (const std::weak_ptr<EndNotice>& one : end_notices_) {
    if (const auto notice = one.lock()) notice->Tell(line);
  }
}

}  // namespace tracefs
