#include "tracefs/mount/answers.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "tracefs/base/clock.h"
#include "tracefs/base/printable.h"
#include "tracefs/base/text.h"
#include "tracefs/feed/feed_parts.h"
#include "tracefs/text/escape.h"

namespace tracefs {
namespace {

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// By reason, or by operation: those that are not 0.
template <typename Counts, typename NameOf>
Json CountsJson(const Counts& counts, NameOf name_of) {
  Json json = Json::object();
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] != 0) json[std::string(name_of(i))] = counts[i];
  }
  return json;
}

Json LostJson(const TracerStats& s) {
  return CountsJson(s.lost, [](size_t reason) {
    return LossReasonName(static_cast<LossReason>(reason));
  });
}

const char* StateName(const TracerStats& s) {
  return s.running ? "running" : "stopped";
}

// A stage's own share is what the one after it did not do.
Json StageJson(const TracerStats::Stage& stage,
               const TracerStats::Stage* later) {
  Json json = {{"name", stage.name},
               {"blocks", stage.blocks},
               {"bytes_in", stage.bytes}};
  if (later != nullptr) json["bytes_out"] = later->bytes;
  json["refused"] = stage.refused;
  const uint64_t later_ns = later == nullptr ? 0 : later->ns;
  json["ns"] = stage.ns > later_ns ? stage.ns - later_ns : 0;
  if (stage.queue) {
    Json& queue = json["queue"];
    queue = {{"blocks", stage.queue->blocks},
             {"bytes", stage.queue->bytes},
             {"limit_bytes", stage.queue->limit_bytes},
             {"events", stage.queue->events}};
    if (stage.queue->overwritten != 0) {
      queue["overwritten"] = stage.queue->overwritten;
    }
  }
  return json;
}

Json AlarmJson(const RuleRunner::Fired& fired, const Rule& rule) {
  const Alarm& alarm = fired.alarm;
  Json actions = Json::array();
  for (size_t i = 0; i < fired.outcomes.size(); ++i) {
    actions.push_back(
        {{"action", RuleActionName(rule.actions[i].kind)},
         {"tracer", rule.actions[i].tracer_id()},
         {"outcome",
          fired.outcomes[i].ok() ? "done" : fired.outcomes[i].message()}});
  }
  Json json = {{"number", fired.number},
               {"time", fired.real_ns},
               {"key", Utf8Text(alarm.key)},
               {"count", alarm.count},
               {"op", OpName(alarm.op)},
               {"pid", alarm.pid},
               {"uid", alarm.uid},
               {"comm", Utf8Text(alarm.command)},
               {"path", Utf8Text(alarm.path)},
               {"actions", std::move(actions)}};
  // What is not known of who did it is left out.
  for (const auto& [field, text] : alarm.values.texts) {
    if (Info(field).source == FieldSource::kDetails) {
      json[Info(field).json_key] = Utf8Text(text);
    }
  }
  if (alarm.caller.sid != 0) json["sid"] = alarm.caller.sid;
  for (const AlarmSource::Ancestor& ancestor : alarm.source.ancestors) {
    json["ancestors"].push_back(
        {{"pid", ancestor.pid}, {"comm", Utf8Text(ancestor.comm)}});
  }
  for (const std::string& path : alarm.paths) {
    json["touched"].push_back(Utf8Text(path));
  }
  for (const std::string_view what : alarm.source.not_known) {
    json["not_known"].push_back(what);
  }
  return json;
}

}  // namespace

ControlAnswer Answer(const Json& json) {
  return ControlAnswer(JsonWithoutHidden(Dump(json)));
}

Json ListJson(const TracerStats& s, const TracerRegistry::Entry& entry) {
  return {{"id", s.id},
          {"name", s.name},
          {"state", StateName(s)},
          {"kind", entry.kind == TracerKind::kTail ? "tail" : "tracer"},
          {"filter", Trim(entry.filter->text())},
          {"drivers", entry.drivers},
          {"output", entry.output},
          {"config", entry.config},
          {"written", s.written},
          {"lost", s.TotalLost()}};
}

Json StatsJson(const TracerStats& s) {
  Json stages = Json::array();
  for (size_t i = 0; i < s.stages.size(); ++i) {
    const bool last = i + 1 == s.stages.size();
    stages.push_back(StageJson(s.stages[i], last ? nullptr : &s.stages[i + 1]));
  }
  const auto average = [](uint64_t ns, uint64_t samples) {
    return samples == 0
               ? Json(nullptr)
               : Json(static_cast<double>(ns) / static_cast<double>(samples));
  };
  Json json = {{"id", s.id},
               {"name", s.name},
               {"state", StateName(s)},
               {"seen", s.seen},
               {"matched", s.matched},
               {"encoded", s.encoded},
               {"counted", s.counted},
               {"written", s.written},
               {"queued", s.Queued()},
               {"delivered", s.written - s.Queued()},
               {"lost", LostJson(s)},
               {"blocks", s.blocks},
               {"filter_ns", average(s.filter_ns, s.filter_samples)},
               {"encode_ns", average(s.encode_ns, s.encode_samples)},
               {"stages", std::move(stages)},
               {"ops", CountsJson(s.by_op, [](size_t op) {
                  return OpName(static_cast<Op>(op));
                })}};
  if (!s.output_error.ok()) json["error"] = s.output_error.message();
  return json;
}

Json StatsJson(const ProcessTable::Stats& s) {
  return {{"reads", s.reads},
          {"gone", s.gone},
          {"changes", s.changes},
          {"losses", s.losses},
          {"events", s.events}};
}

Json StatsJson(const keep::KeptTotals& t) {
  return {{"parts", t.parts},   {"bytes", t.bytes}, {"same", t.same},
          {"cloned", t.cloned}, {"held", t.held},   {"removed", t.removed},
          {"failed", t.failed}};
}

Json HelpersJson(const std::vector<HelperCounts>& helpers) {
  Json json = Json::array();
  for (const HelperCounts& helper : helpers) {
    json.push_back({{"kind", HelperName(helper.kind)},
                    {"living", helper.living},
                    {"died", helper.died},
                    {"replaced", helper.replaced}});
  }
  return json;
}

Json ChoiceJson(const ExplainedChoice& choice,
                const TracerRegistry::Entries& tracers) {
  Json causes = Json::array();
  for (const ExplainedChoice::Cause& cause : choice.causes) {
    uint32_t id = cause.who.tracer;
    if (const auto found = tracers.find(id);
        found != tracers.end() && found->second.rules != nullptr) {
      id = found->second.rules->tracer();
    }
    causes.push_back({{"tracer", id},
                      {"name", cause.who.name},
                      {"op", OpName(cause.op)},
                      {"filter", cause.who.filter}});
  }
  return {{"subject", choice.subject},   {"choice", choice.choice},
          {"causes", std::move(causes)}, {"why", choice.why},
          {"hides", choice.hides},       {"for_good", choice.for_good}};
}

Json OpenJson(const OpenBefore& before) {
  Json examples = Json::array();
  for (const OpenBefore::File& file : before.examples) {
    examples.push_back({{"path", file.path},
                        {"mode", IoModeName(file.mode)},
                        {"now", IoModeName(file.now)}});
  }
  return {{"files", before.open},
          {"opened_before", before.different},
          {"examples", std::move(examples)}};
}

void AddRulesJson(const RuleRunner& runner, bool suspended, size_t most,
                  Json* rules) {
  const uint64_t now = MonotonicNs();
  const RuleRunner::Report report = runner.report();
  for (size_t i = 0; i < runner.rules().size(); ++i) {
    const Rule& rule = runner.rules()[i];
    const RuleEngine::Standing& standing = report.rules[i];
    Json last = Json::array();
    // The newest of all rules of the tracer.
    for (size_t j = 0; j < std::min(most, report.fired.size()); ++j) {
      const RuleRunner::Fired& fired = report.fired[j];
      if (fired.alarm.rule == i) last.push_back(AlarmJson(fired, rule));
    }
    rules->push_back({{"tracer", runner.tracer()},
                      {"rule", i + 1},
                      {"title", rule.title},
                      {"text", rule.text},
                      {"state", suspended                       ? "stopped"
                                : now < standing.holds_until_ns ? "alarm"
                                                                : "calm"},
                      {"matched", standing.matched},
                      {"missed", report.missed},
                      {"alarms", standing.alarms},
                      {"suppressed", standing.suppressed},
                      {"told", report.alarms},
                      {"last", std::move(last)}});
  }
}

std::string EndLine(std::string_view end_reason, const Status& status,
                    const std::vector<TracerStats>& tracers) {
  Json all = Json::array();
  for (const TracerStats& s : tracers) {
    if (s.kind != TracerKind::kConfig) continue;
    Json one = {{"id", s.id},
                {"name", s.name},
                {"written", s.written},
                {"lost", LostJson(s)}};
    if (!s.output_error.ok()) one["error"] = s.output_error.message();
    all.push_back(std::move(one));
  }
  Json line = {{"end", end_reason}, {"tracers", std::move(all)}};
  if (!status.ok()) line["error"] = status.message();
  return Dump(line) + '\n';
}

Json HeldJson(const HoldLot::Held& held, const ClockPair& clock) {
  Json waiting = Json::array();
  for (const HoldLot::Waiter& one : held.waiting) {
    waiting.push_back({{"pid", one.pid},
                       {"comm", Printable(one.comm)},
                       {"op", OpName(one.op)},
                       {"path", Printable(one.path)},
                       {"since", clock.ToReal(one.since_ns)}});
  }
  Json json = {{"hold", held.number},
               {"tracer", held.wish.tracer},
               {"rule", held.wish.rule},
               {"title", held.wish.title},
               {"uid", held.wish.uid},
               {"comm", Printable(held.wish.comm)},
               {"since", clock.ToReal(held.since_ns)},
               {"until", clock.ToReal(held.until_ns)},
               {"then", held.wish.fails ? "fail" : "go-on"},
               {"refused", held.refused},
               {"waiting", std::move(waiting)}};
  if (held.wish.pid != 0) json["pid"] = held.wish.pid;
  return json;
}

}  // namespace tracefs
