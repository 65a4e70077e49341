#include "tracefs/tracers/plan.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "drivers/assembly/table.h"
#include "drivers/output/file_name.h"
#include "drivers/output/table.h"
#include "filters/output/chain.h"
#include "filters/output/table.h"
#include "tracefs/base/spelling.h"
#include "tracefs/base/units.h"
#include "tracefs/pipeline/framing.h"

namespace tracefs {
namespace {

std::string DriversText(const std::vector<ConfigEntry>& assembly) {
  std::string text;
  if (std::all_of(assembly.begin(), assembly.end(), [](const ConfigEntry& e) {
        return e.role == EntryRole::kRule;
      })) {
    text = kDefaultAssembly;
  }
  for (const ConfigEntry& entry : assembly) {
    if (!text.empty()) text += "; ";
    text += entry.name;
    if (entry.value.type == ValueType::kBlock) {
      text += " = {" + entry.value.text + "}";
    }
    if (entry.role == EntryRole::kRule) text += ' ' + entry.value.text;
    if (entry.value.flags.empty()) continue;
    text += " = {";
    const char* separator = " ";
    for (const ConfigWord& flag : entry.value.flags) {
      text += separator + flag.text;
      separator = " | ";
    }
    text += " }";
  }
  return text;
}

Status AddAssembly(const TracerConfig& config, std::string_view file,
                   TracerParts* parts) {
  for (const ConfigEntry& entry : config.assembly) {
    if (entry.role == EntryRole::kRule) continue;
    Result<std::unique_ptr<AssemblyDriver>> driver =
        FindAssemblyDriver(entry.name)->make(entry, file);
    if (!driver.ok()) return driver.status();
    parts->assembly.push_back(std::move(*driver));
  }
  if (parts->assembly.empty()) {
    parts->assembly.push_back(MakeDefaultAssembly());
  }
  return Status::Ok();
}

// What an entry of an output section would open.
std::vector<Wish> WishesOf(const ConfigEntry& entry) {
  const OutputFilterRow* const filter = FindOutputFilter(entry.name);
  const auto wishes =
      filter != nullptr ? filter->wishes : FindOutputDriver(entry.name)->wishes;
  return wishes != nullptr ? wishes(entry) : std::vector<Wish>();
}

std::vector<Wish> WishesOf(const TracerConfig& config) {
  std::vector<Wish> all;
  for (const ConfigEntry& entry : config.output) {
    for (Wish& wish : WishesOf(entry)) all.push_back(std::move(wish));
  }
  return all;
}

// What was opened for the tracer, by entry; nothing where nothing was.
std::vector<std::span<UniqueFd>> ByEntry(const TracerConfig& config,
                                         std::span<UniqueFd> files) {
  std::vector<std::span<UniqueFd>> given(config.output.size());
  for (size_t i = 0; i < given.size() && !files.empty(); ++i) {
    given[i] = files.first(WishesOf(config.output[i]).size());
    files = files.subspan(given[i].size());
  }
  return given;
}

std::string PlaceText(const Config& file, SourcePosition position) {
  return file.file_name + ':' + std::to_string(position.line) + ':' +
         std::to_string(position.column);
}

// What stands in for a driver where nothing is to be made.
class UnmadeDriver final : public OutputDriver {
 public:
  Status Initialize(const TraceIdentity&) override { return Unmade(); }
  Status Write(ByteSpan, ByteSpan, const BlockInfo&) override {
    return Unmade();
  }
  Status Flush() override { return Unmade(); }
  Status Release() override { return Status::Ok(); }
  size_t PreferredBlockSize() const override { return 0; }

 private:
  static Status Unmade() { return Status::Invalid("only looked at"); }
};

Result<std::unique_ptr<OutputDriver>> MakeDriver(const ConfigEntry& entry,
                                                 bool probe,
                                                 OutputDriverFacts* facts) {
  const OutputDriverRow& row = *FindOutputDriver(entry.name);
  if (!probe) return row.make(entry, facts);
  if (row.probe != nullptr) {
    if (Status s = row.probe(entry); !s.ok()) return s;
  }
  return std::unique_ptr<OutputDriver>(std::make_unique<UnmadeDriver>());
}

// `files`: one for each wish of this output section, or none.
Status AddOutput(const Config& file, const TracerConfig& config,
                 std::span<UniqueFd> files, bool probe, TracerPlan* plan) {
  const ConfigEntry& last = config.output.back();
  OutputDriverFacts facts;
  plan->file_change = std::make_shared<OutputFileChange>();
  facts.changed = [change = plan->file_change](const OutputFileId& id,
                                               bool written) {
    if (*change) (*change)(id, written);
  };
  const std::vector<std::span<UniqueFd>> given = ByEntry(config, files);
  for (UniqueFd& fd : given.back()) facts.given.push_back(std::move(fd));
  Result<std::unique_ptr<OutputDriver>> driver =
      MakeDriver(last, probe, &facts);
  if (!driver.ok()) {
    return driver.status().Prefixed(PlaceText(file, last.position));
  }
  plan->files = std::move(facts.files);
  plan->parts.unbuffered = facts.unbuffered;
  plan->parts.when_full = facts.when_full;
  if (facts.flight) {
    if (plan->flight == nullptr)
      plan->flight = std::make_shared<FlightControl>();
    plan->flight->snapshot = std::move(facts.flight->snapshot);
    plan->flight->every_ns = facts.flight->trigger_every_ns;
  }
  // From the end of the chain to its beginning, with a meter before each stage.
  std::vector<std::unique_ptr<StageProbe>>& probes = plan->parts.probes;
  const auto metered = [&](const std::string& name,
                           std::unique_ptr<OutputFilter> stage) {
    probes.insert(probes.begin(), std::make_unique<StageProbe>(name));
    return Metered(*probes.front(), std::move(stage));
  };
  std::unique_ptr<OutputFilter> chain =
      metered(last.name, MakeFraming(std::move(*driver)));
  OutputFilterFacts filter_facts;
  filter_facts.probe = probe;
  for (size_t i = config.output.size() - 1; i-- > 0;) {
    const ConfigEntry& entry = config.output[i];
    filter_facts.given = Given(given[i]);
    Result<std::unique_ptr<OutputFilter>> filter =
        FindOutputFilter(entry.name)
            ->make(entry, std::move(chain), &filter_facts);
    if (!filter.ok()) {
      return filter.status().Prefixed(PlaceText(file, entry.position));
    }
    chain = metered(entry.name, std::move(*filter));
  }
  plan->parts.output = std::move(chain);
  plan->parts.heartbeat_ns = filter_facts.heartbeat_ns;
  return Status::Ok();
}

const OutputDriverRow& DriverRowOf(const TracerConfig& config) {
  return *FindOutputDriver(config.output.back().name);
}

// The filter that asks for snapshots; null: there is none.
const ConfigOption* TriggerOf(const TracerConfig& config) {
  return config.output.back().Find(DriverRowOf(config).trigger_option);
}

Result<Filter> CompileTrigger(const Config& file, const ConfigOption& trigger,
                              const NameService& users, NameTable& names) {
  // Its text may hold escapes: columns are those within the trigger.
  Result<Filter> filter =
      Filter::Compile(trigger.value.text, {.file = "trigger"}, users, names);
  if (filter.ok()) return filter;
  return ErrorAt(file.file_name, trigger.position, filter.status().message());
}

// "'flight'"
std::string FlightRecorders() {
  std::string names;
  for (const OutputDriverRow& row : OutputDrivers()) {
    if (row.trigger_option.empty()) continue;
    names += (names.empty() ? "" : " or ") + Quoted(row.entry.name);
  }
  return names;
}

// Finds the tracer that an action names among those of its file.
Status Resolve(const Config& file, uint32_t first_id, RuleAction* action) {
  const std::vector<TracerConfig>& tracers = file.tracers;
  size_t number = tracers.size();
  if (const auto given = ParseUnsigned(action->tracer);
      given && *given >= 1 && *given <= tracers.size()) {
    number = *given - 1;
  }
  std::vector<std::string_view> known;
  for (size_t i = 0; i < tracers.size(); ++i) {
    known.push_back(tracers[i].name);
    if (tracers[i].name == action->tracer) number = i;
  }
  if (number == tracers.size()) {
    return ErrorAt(file.file_name, action->position,
                   "there is no tracer " + Quoted(action->tracer) +
                       " in this file" + DidYouMean(action->tracer, known));
  }
  if (action->kind == RuleAction::Kind::kSnapshot &&
      DriverRowOf(tracers[number]).trigger_option.empty()) {
    return ErrorAt(file.file_name, action->position,
                   "tracer " + Quoted(action->tracer) + " has the output " +
                       Quoted(tracers[number].output.back().name) +
                       "; only a flight recorder (output " + FlightRecorders() +
                       ") writes snapshots");
  }
  action->tracer_id = first_id + static_cast<uint32_t>(number);
  return Status::Ok();
}

// A feed reads the blocks that come to it, and knows operations.
Status CheckForFeed(const Config& file, const TracerConfig& config) {
  const OutputDriverRow& row = DriverRowOf(config);
  if (row.feed == nullptr) return Status::Ok();
  const std::string feed(row.feed(config.output.back()));
  if (feed.empty()) return Status::Ok();
  for (size_t i = 0; i + 1 < config.output.size(); ++i) {
    const ConfigEntry& filter = config.output[i];
    // Those that a reader must undo.
    if (FindOutputFilter(filter.name)->make_decoder == nullptr) continue;
    return ErrorAt(file.file_name, filter.position,
                   Quoted(filter.name) + " changes the blocks that feed = " +
                       feed + " has to read; leave it out");
  }
  for (const ConfigEntry& driver : config.assembly) {
    const AssemblyDriverRow* row_of = FindAssemblyDriver(driver.name);
    if (row_of == nullptr || !row_of->only_counts) continue;  // or a rule
    return ErrorAt(file.file_name, driver.position,
                   "feed = " + feed + " has no place for counts; give " +
                       Quoted(driver.name) +
                       " a tracer of its own, or serve it with --metrics");
  }
  return Status::Ok();
}

// What a tracer's output is called this time; the same without one.
TracerConfig WithName(const TracerConfig& config, const TracerPlan& plan) {
  TracerConfig named = config;
  ConfigEntry& driver = named.output.back();
  if (!DriverRowOf(config).makes_named_files) return named;
  Result<std::string> name = ExpandFileName(
      driver.value.text, plan.parts.header.clock.real_ns, plan.parts.serial);
  if (name.ok()) driver.value.text = *std::move(name);  // CheckOutput saw it
  return named;
}

// A client makes the files of what it adds before the daemon knows the trace.
Status CheckNamesAreFixed(const Config& config) {
  for (const TracerConfig& tracer : config.tracers) {
    const ConfigEntry& driver = tracer.output.back();
    if (!DriverRowOf(tracer).makes_named_files ||
        !IsTemplate(driver.value.text)) {
      continue;
    }
    return ErrorAt(config.file_name, driver.position,
                   "%date and %serial are for the config that a mount begins "
                   "with; to add this one write its name out");
  }
  return Status::Ok();
}

// What the grammar cannot see of a tracer's output section.
Status CheckOutput(const Config& file, const TracerConfig& config) {
  if (Status s = CheckChain(file.file_name, config.output); !s.ok()) return s;
  const ConfigEntry& driver = config.output.back();
  if (Status s = CheckForFeed(file, config); !s.ok()) return s;
  const OutputDriverRow& row = DriverRowOf(config);
  Status status;
  if (row.makes_named_files) {
    status = ExpandFileName(driver.value.text, 0, {}).status();
  }
  if (status.ok() && row.check != nullptr) status = row.check(driver);
  if (status.ok()) return status;
  return ErrorAt(file.file_name, driver.position, status.message());
}

// The compiled filter of one tracer of `file`.
Result<Filter> CompileFilter(const Config& file, const TracerConfig& config,
                             const NameService& users, NameTable& names) {
  return Filter::Compile(
      config.filter,
      {.file = file.file_name, .position = config.filter_position}, users,
      names);
}

// The rules in the config of tracer `number` (from 0) of `file`, the first
// tracer of which has the id `first_id`.
Result<std::vector<Rule>> RulesOf(const Config& file, size_t number,
                                  uint32_t first_id, const NameService& users,
                                  NameTable& names) {
  std::vector<Rule> rules;
  for (const ConfigEntry& entry : file.tracers[number].assembly) {
    if (entry.role != EntryRole::kRule) continue;
    Result<Rule> rule =
        ParseRule(entry.value.text,
                  {.file = file.file_name, .position = entry.value.position},
                  users, names);
    if (!rule.ok()) return rule.status();
    for (RuleAction& action : rule->actions) {
      if (Status s = Resolve(file, first_id, &action); !s.ok()) return s;
    }
    rules.push_back(std::move(*rule));
  }
  return rules;
}

Result<TracerPlan> PlanTracer(const Config& file, const TracerConfig& config,
                              uint32_t id, const NameService& users,
                              NameTable& names) {
  TracerPlan plan;
  TracerParts& parts = plan.parts;
  parts.id = id;
  parts.name = config.name;
  if (Status s = CheckOutput(file, config); !s.ok()) return s;
  Result<Filter> filter = CompileFilter(file, config, users, names);
  if (!filter.ok()) return filter.status();
  const std::string dag = filter->general().Dump();
  plan.filter = *filter;
  plan.filter_place = PlaceText(file, config.filter_position);
  plan.warnings = filter->warnings();
  parts.filter = std::make_unique<Filter>(std::move(*filter));
  if (Status s = AddAssembly(config, file.file_name, &parts); !s.ok()) {
    return s;
  }
  if (const ConfigOption* trigger = TriggerOf(config)) {
    const bool any = std::any_of(
        parts.assembly.begin(), parts.assembly.end(),
        [](const auto& driver) { return driver->counter() == nullptr; });
    if (!any) {
      return ErrorAt(file.file_name, trigger->position,
                     "a trigger looks at what is recorded, and this tracer "
                     "only counts; add the driver stream");
    }
    Result<Filter> when = CompileTrigger(file, *trigger, users, names);
    if (!when.ok()) return when.status();
    for (const std::string& warning : when->warnings()) {
      plan.warnings.push_back(
          ErrorAt(file.file_name, trigger->position, warning).message());
    }
    plan.flight = std::make_shared<FlightControl>();
    parts.assembly.push_back(std::make_shared<TriggerTap>(
        *std::move(when), plan.flight, parts.assembly));
  }
  Result<format::Serial> serial = NewSerial();
  if (!serial.ok()) return serial.status();
  parts.serial = *serial;
  parts.output_chain = ChainText(config.output);
  format::TraceHeader& header = parts.header;
  header.tracer_id = id;
  header.clock = ClockPair::Now();
  header.Set("filter.text", config.filter);
  header.Set("filter.dag", dag);
  header.Set("drivers", DriversText(config.assembly));
  header.Set("output.chain", parts.output_chain);
  header.Set("config.text", ToText(config));
  return plan;
}

}  // namespace

Result<format::Serial> NewSerial() {
  format::Serial serial;
  if (::getrandom(serial.data(), serial.size(), 0) !=
      static_cast<ssize_t>(serial.size())) {
    return Status::System(errno, "random serial number");
  }
  return serial;
}

ConfigNames KnownNames() {
  static const std::vector<EntryRow> assembly = [] {
    std::vector<EntryRow> rows;
    for (const AssemblyDriverRow& row : AssemblyDrivers()) {
      rows.push_back(row.entry);
    }
    rows.push_back({.name = "when",
                    .role = EntryRole::kRule,
                    .value = {.type = ValueType::kRest}});
    return rows;
  }();
  static const std::vector<EntryRow> output = [] {
    std::vector<EntryRow> rows;
    for (const OutputFilterRow& row : OutputFilters()) {
      rows.push_back(row.entry);
    }
    for (const OutputDriverRow& row : OutputDrivers()) {
      rows.push_back(row.entry);
    }
    return rows;
  }();
  return {assembly, output};
}

namespace {

// What feeds the rules of a tracer.
Result<TracerPlan> PlanRules(std::vector<Rule> rules, const TracerPlan& host,
                             const NameService& users, NameTable& names) {
  Result<Filter> filter = FilterOf(rules, users, names);
  if (!filter.ok()) return filter.status();
  TracerPlan plan;
  plan.filter = *filter;
  plan.filter_place = host.filter_place;
  plan.rules_of = host.parts.id;
  for (const Rule& rule : rules) {
    plan.warnings.insert(plan.warnings.end(), rule.what.warnings().begin(),
                         rule.what.warnings().end());
    for (const RuleAction& action : rule.actions) {
      if (!action.filter) continue;
      plan.warnings.insert(plan.warnings.end(),
                           action.filter->warnings().begin(),
                           action.filter->warnings().end());
    }
  }
  plan.rules = std::move(rules);
  TracerParts& parts = plan.parts;
  parts.id = kFirstRulesId + host.parts.id;
  parts.name = "rules";
  parts.header.tracer_id = parts.id;
  parts.header.clock = ClockPair::Now();
  parts.header.Set("filter.text", filter->text());
  parts.output_chain = "rules";
  parts.filter = std::make_unique<Filter>(std::move(*filter));
  parts.assembly.push_back(MakeDefaultAssembly());
  Result<format::Serial> serial = NewSerial();
  if (!serial.ok()) return serial.status();
  parts.serial = *serial;
  return plan;
}

// All tracers, but for their outputs.
Result<std::vector<TracerPlan>> PlanWithoutOutputs(const Config& config,
                                                   NameTable& names,
                                                   const NameService& users,
                                                   uint32_t first_id) {
  std::vector<TracerPlan> plans;
  for (const TracerConfig& tracer : config.tracers) {
    const auto id = static_cast<uint32_t>(first_id + plans.size());
    Result<TracerPlan> plan = PlanTracer(config, tracer, id, users, names);
    if (!plan.ok()) return plan.status();
    plans.push_back(std::move(*plan));
  }
  for (size_t i = 0; i < config.tracers.size(); ++i) {
    Result<std::vector<Rule>> rules =
        RulesOf(config, i, first_id, users, names);
    if (!rules.ok()) return rules.status();
    if (rules->empty()) continue;
    Result<TracerPlan> plan =
        PlanRules(std::move(*rules), plans[i], users, names);
    if (!plan.ok()) return plan.status();
    plans.push_back(std::move(*plan));
  }
  return plans;
}

}  // namespace

Result<std::vector<TracerPlan>> PlanTracers(const Config& config,
                                            NameTable& names,
                                            PlanOptions options) {
  // Every filter first, every output after: a mistake in the last tracer must
  // not leave the files of the others behind.
  Result<std::vector<TracerPlan>> plans =
      PlanWithoutOutputs(config, names, *options.users, options.first_id);
  if (!plans.ok()) return plans.status();
  std::span<UniqueFd> files;
  if (options.files != nullptr) {
    if (Status s = CheckNamesAreFixed(config); !s.ok()) return s;
    size_t wished = 0;
    for (const TracerConfig& tracer : config.tracers) {
      wished += WishesOf(tracer).size();
    }
    if (options.files->size() != wished) {
      return Status::Invalid(
          std::to_string(wished) + " files are needed, and " +
          std::to_string(options.files->size()) + " were sent");
    }
    files = *options.files;
  }
  for (size_t i = 0; i < config.tracers.size(); ++i) {
    const TracerConfig tracer = WithName(config.tracers[i], (*plans)[i]);
    std::span<UniqueFd> of_tracer;
    if (options.files != nullptr) {
      of_tracer = files.first(WishesOf(tracer).size());
      files = files.subspan(of_tracer.size());
    }
    if (Status s =
            AddOutput(config, tracer, of_tracer, options.probe, &(*plans)[i]);
        !s.ok()) {
      return s;
    }
  }
  return plans;
}

Result<std::vector<Wish>> WishedFiles(const Config& config,
                                      const NameService& users,
                                      NameTable& names) {
  const Result<std::vector<TracerPlan>> plans =
      PlanWithoutOutputs(config, names, users, /*first_id=*/1);
  if (!plans.ok()) return plans.status();
  if (Status s = CheckNamesAreFixed(config); !s.ok()) return s;
  std::vector<Wish> all;
  for (const TracerConfig& tracer : config.tracers) {
    for (Wish& wish : WishesOf(tracer)) {
      all.push_back(std::move(wish));
    }
  }
  return all;
}

void AddProperties(const format::TraceHeader& common,
                   format::TraceHeader* header) {
  for (const auto& [key, value] : common.properties) header->Set(key, value);
}

bool NeedCallers(std::span<const TracerPlan> plans) {
  for (const TracerPlan& plan : plans) {
    for (size_t i = 0; i < kOpCount; ++i) {
      const auto op = static_cast<Op>(i);
      if (plan.parts.filter->Needs(op).caller) return true;
      for (const auto& driver : plan.parts.assembly) {
        if (driver->Needs(op).caller) return true;
      }
    }
  }
  return false;
}

bool RecordsData(std::span<const TracerPlan> plans) {
  return std::any_of(plans.begin(), plans.end(), [](const TracerPlan& plan) {
    return MayKeep(plan, Op::read_) || MayKeep(plan, Op::write_);
  });
}

bool MayKeep(const TracerPlan& plan, Op op) {
  return plan.parts.filter->Needs(op).constant != Verdict::kDrop;
}

bool NamesLocks(std::span<const TracerPlan> plans) {
  constexpr Op kLockOps[] = {Op::getlk_, Op::setlk_, Op::flock_};
  const auto named_by = [&](const Filter& filter) {
    return std::any_of(std::begin(kLockOps), std::end(kLockOps), [&](Op op) {
      return filter.Names(op) && filter.Needs(op).constant != Verdict::kDrop;
    });
  };
  for (const TracerPlan& plan : plans) {
    if (plan.filter && named_by(*plan.filter)) return true;
    for (const Rule& rule : plan.rules) {
      for (const RuleAction& action : rule.actions) {
        if (action.filter && named_by(*action.filter)) return true;
      }
    }
  }
  return false;
}

}  // namespace tracefs
