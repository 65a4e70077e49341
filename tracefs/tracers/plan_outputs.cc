#include "tracefs/tracers/plan_outputs.h"

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "drivers/assembly/table.h"
#include "drivers/output/file_name.h"
#include "drivers/output/table.h"
#include "filters/output/chain.h"
#include "filters/output/table.h"
#include "tracefs/tracers/parts.h"

namespace tracefs {
namespace {

// A failure, and where the config asked for what failed.
Status WithPlace(const Status& failure, const Config& file,
                 SourcePosition position) {
  if (file.file_name == kNobodysText) return failure;
  return failure.Prefixed(PlaceText(file, position));
}

const OutputDriverRow& DriverRowOf(const TracerConfig& config) {
  return *FindOutputDriver(config.output.back().name);
}

// What an entry of an output section would open.
std::vector<Wish> WishesOf(const ConfigEntry& entry) {
  const OutputFilterRow* const filter = FindOutputFilter(entry.name);
  const auto wishes =
      filter != nullptr ? filter->wishes : FindOutputDriver(entry.name)->wishes;
  return wishes != nullptr ? wishes(entry) : std::vector<Wish>();
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

Result<MadeOutputDriver> MakeDriver(const ConfigEntry& entry, bool probe,
                                    OutputDriverInputs inputs) {
  const OutputDriverRow& row = *FindOutputDriver(entry.name);
  if (!probe) return row.make(entry, std::move(inputs));
  if (row.probe != nullptr) {
    if (Status s = row.probe(entry); !s.ok()) return s;
  }
  return MadeOutputDriver{
      .driver = std::make_unique<UnmadeDriver>(),
      .when_full = AsksToFail(entry) ? LossPolicy::kFail : LossPolicy::kBlock};
}

// `files`: one for each wish of this section and of those that follow, or none.
// Takes those of this one.
Status MakeOutput(const Config& file, const TracerConfig& config,
                  const TracerPlanOptions& options, std::span<UniqueFd>* files,
                  TracerPlan* plan) {
  const ConfigEntry& last = config.output.back();
  plan->file_change = std::make_shared<OutputFileChange>();
  const auto changed = [change = plan->file_change](const OutputFileId& id,
                                                    bool written) {
    if (*change) (*change)(id, written);
  };
  // By entry; nothing where nothing was given.
  std::vector<std::span<UniqueFd>> given;
  for (const ConfigEntry& entry : config.output) {
    const size_t wished = files->empty() ? 0 : WishesOf(entry).size();
    given.push_back(files->first(wished));
    *files = files->subspan(wished);
  }
  Result<MadeOutputDriver> made =
      MakeDriver(last, options.probe,
                 {.given = Given(given.back(), options.again),
                  .changed = changed,
                  .stay = options.stay});
  if (!made.ok()) return WithPlace(made.status(), file, last.position);
  plan->files = std::move(made->files);
  if (made->flight) {
    if (plan->flight == nullptr)
      plan->flight = std::make_shared<FlightControl>();
    plan->flight->snapshot = std::move(made->flight->snapshot);
    plan->flight->every_ns = made->flight->trigger_every_ns;
  }
  TracerParts& parts = plan->parts;
  // Whoever asks for `async` has blocks wait in memory.
  parts.unbuffered = last.Has("unbuffered") ||
                     (made->flight && made->flight->outlives_daemon &&
                      config.output.front().name != "async");
  parts.when_full = made->when_full;
  if (parts.when_full == LossPolicy::kFail) {
    parts.header.Set("output.when_full", last.Text("when_full"));
  }
  PutDriver(last.name, std::move(made->driver), &parts);
  for (size_t i = config.output.size() - 1; i-- > 0;) {
    const ConfigEntry& entry = config.output[i];
    const OutputFilterRow& row = *FindOutputFilter(entry.name);
    Result<std::unique_ptr<OutputFilter>> filter = row.make(
        entry, std::move(parts.output),
        {.given = Given(given[i], options.again), .probe = options.probe});
    if (!filter.ok()) {
      return WithPlace(filter.status(), file, entry.position);
    }
    PutFilter(entry.name, *std::move(filter), &parts);
    if (const uint64_t ns = entry.Number(row.heartbeat_option); ns != 0) {
      parts.heartbeat_ns =
          parts.heartbeat_ns == 0 ? ns : std::min(parts.heartbeat_ns, ns);
    }
  }
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

bool HasLossPolicy(const ConfigEntry& filter) {
  const auto& options = FindOutputFilter(filter.name)->entry.options;
  return std::any_of(options.begin(), options.end(), [](const OptionRow& row) {
    return row.name == "when_full";
  });
}

// What promises that nothing is done unrecorded has nothing before it that
// loses blocks by a policy of its own, and records operations one by one.
Status CheckForFail(const Config& file, const TracerConfig& config) {
  const ConfigEntry& driver = config.output.back();
  if (!AsksToFail(driver)) return Status::Ok();
  for (size_t i = 0; i + 1 < config.output.size(); ++i) {
    const ConfigEntry& filter = config.output[i];
    if (!HasLossPolicy(filter)) continue;
    return ErrorAt(file.file_name, filter.position,
                   Quoted(filter.name) +
                       " holds blocks back and may lose them after operations "
                       "were done; with when_full = fail leave it out");
  }
  const OutputDriverRow& row = DriverRowOf(config);
  if (row.feed != nullptr && !row.feed(driver).empty()) {
    return ErrorAt(file.file_name, driver.position,
                   "how long the lines of a feed are is not known beforehand; "
                   "with when_full = fail write a trace, and give the feed a "
                   "tracer of its own");
  }
  bool only_counts = !config.assembly.empty();
  for (const ConfigEntry& entry : config.assembly) {
    const AssemblyDriverRow* assembly = FindAssemblyDriver(entry.name);
    only_counts &= assembly != nullptr && assembly->only_counts;
  }
  if (!only_counts) return Status::Ok();
  return ErrorAt(file.file_name, config.assembly.front().position,
                 "when_full = fail is for operations that are recorded one by "
                 "one, and this tracer only counts them; add " +
                     std::string(kDefaultAssemblyDriver));
}

// What a tracer's output is called this time; the same without one.
TracerConfig WithName(const TracerConfig& config, uint64_t real_ns,
                      const format::Serial& serial) {
  TracerConfig named = config;
  ConfigEntry& driver = named.output.back();
  if (!DriverRowOf(config).makes_named_files) return named;
  Result<std::string> name = ExpandFileName(driver.value.text, real_ns, serial);
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
                   "%serial is for the config that a mount begins with; to add "
                   "this one write its name out, or let tracefs-ctl put in a "
                   "%date");
  }
  return Status::Ok();
}

}  // namespace

bool AsksToFail(const ConfigEntry& driver) {
  return driver.Text("when_full") == "fail";
}

std::string PlaceText(const Config& file, SourcePosition position) {
  if (file.file_name == kNobodysText) return file.file_name;
  return file.file_name + ':' + std::to_string(position.line) + ':' +
         std::to_string(position.column);
}

// What the grammar cannot see of a tracer's output section.
Status CheckOutput(const Config& file, const TracerConfig& config) {
  if (Status s = CheckChain(file.file_name, config.output); !s.ok()) return s;
  const ConfigEntry& driver = config.output.back();
  if (Status s = CheckForFeed(file, config); !s.ok()) return s;
  if (Status s = CheckForFail(file, config); !s.ok()) return s;
  const OutputDriverRow& row = DriverRowOf(config);
  Status status;
  if (row.makes_named_files) {
    status = ExpandFileName(driver.value.text, 0, {}).status();
  }
  if (status.ok() && row.check != nullptr) status = row.check(driver);
  if (status.ok()) return status;
  return ErrorAt(file.file_name, driver.position, status.message());
}

Result<std::vector<Wish>> WishesOf(const Config& file) {
  if (Status s = CheckNamesAreFixed(file); !s.ok()) return s;
  std::vector<Wish> all;
  for (const TracerConfig& tracer : file.tracers) {
    // Of a fixed name %% is all there is to replace.
    const TracerConfig named = WithName(tracer, 0, {});
    for (const ConfigEntry& entry : named.output) {
      for (Wish& wish : WishesOf(entry)) all.push_back(std::move(wish));
    }
  }
  return all;
}

Config WithFixedNames(const Config& file,
                      const std::vector<TracerPlan>& plans) {
  Config fixed = file;
  for (size_t i = 0; i < fixed.tracers.size(); ++i) {
    const TracerParts& parts = plans[i].parts;
    TracerConfig& tracer = fixed.tracers[i];
    tracer = WithName(tracer, parts.header.clock.real_ns, parts.serial);
    if (!DriverRowOf(tracer).makes_named_files) continue;
    std::string& name = tracer.output.back().value.text;
    for (size_t at = 0; (at = name.find('%', at)) != name.npos; at += 2) {
      name.insert(at, 1, '%');
    }
  }
  return fixed;
}

std::vector<std::string> TraceFilesOf(const Config& file,
                                      const std::vector<TracerPlan>& plans,
                                      const std::string& here) {
  std::vector<std::string> paths;
  const bool keeps = std::ranges::any_of(
      plans, [](const TracerPlan& plan) { return plan.keep.has_value(); });
  for (size_t i = 0; i < file.tracers.size(); ++i) {
    const TracerParts& parts = plans[i].parts;
    const OutputDriverRow& row = DriverRowOf(file.tracers[i]);
    // A flight recorder's snapshots are no whole traces.
    if (!row.makes_named_files || !row.trigger_option.empty()) continue;
    if (keeps && !plans[i].keep) continue;
    const TracerConfig named =
        WithName(file.tracers[i], parts.header.clock.real_ns, parts.serial);
    const std::string& path = named.output.back().value.text;
    paths.push_back(path.starts_with('/') ? path : here + '/' + path);
  }
  return paths;
}

Status MakeOutputs(const Config& file, const TracerPlanOptions& options,
                   std::vector<TracerPlan>* plans) {
  std::vector<UniqueFd>* const given = options.files;
  std::span<UniqueFd> files;
  if (given != nullptr) {
    const Result<std::vector<Wish>> wishes = WishesOf(file);
    if (!wishes.ok()) return wishes.status();
    if (given->size() != wishes->size()) {
      return Status::Invalid(std::to_string(wishes->size()) +
                             " files are needed, and " +
                             std::to_string(given->size()) + " were sent");
    }
    files = *given;
  }
  for (size_t i = 0; i < file.tracers.size(); ++i) {
    const TracerParts& parts = (*plans)[i].parts;
    if (Status s = MakeOutput(
            file,
            WithName(file.tracers[i], parts.header.clock.real_ns, parts.serial),
            options, &files, &(*plans)[i]);
        !s.ok()) {
      return s;
    }
  }
  return Status::Ok();
}

}  // namespace tracefs
