// TracerRegistry: the tracers of one mount, whoever wanted them: they come,
// are suspended and resumed, get other filters, are raised by rules, and go.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "filters/input/filter.h"
#include "filters/input/name_table.h"
#include "tracefs/pipeline/pipeline.h"
#include "tracefs/process/process_table.h"
#include "tracefs/process/process_watch.h"
#include "tracefs/process/system_calls.h"
#include "tracefs/rules/rule_runner.h"
#include "tracefs/tracers/hold_service.h"
#include "tracefs/tracers/needs.h"
#include "tracefs/tracers/plan.h"
#include "tracefs/tracers/snapshot_service.h"

namespace tracefs {

// What tracers work on. All that is referred to outlives the registry.
struct TracedMount {
  Pipeline& pipeline;
  NameTable& names;
  ProcessTable& processes;
  SystemCalls& calls;
  // Null: somebody else tells of processes, or nobody.
  ProcessWatch* watch;
  SnapshotService& snapshots;
  const format::TraceHeader& header;  // what all traces say
  // Told which files are outputs, and not to be traced, and which no longer.
  std::function<void(const OutputFileId& file, bool written)> note_output;
  // Makes the kernel forget the names it keeps; may be empty.
  std::function<void()> forget_names;
  // Has what lies below the mount stay covered if the daemon dies; may be
  // empty.
  std::function<Status()> stay_shut;
  HoldService* holds = nullptr;  // null: nobody can be held
};

// Threads: any, but for Add: one at a time.
class TracerRegistry {
 public:
  struct Entry {
    TracerKind kind = TracerKind::kConfig;
    // What it records unless a rule has raised it, and that at all.
    std::optional<Filter> filter;
    bool suspended = false;
    std::string drivers;
    std::string output;
    std::string config;
    std::vector<OutputFileId> files;
    NeedSet needs;        // leases
    bool flight = false;  // can write snapshots
    bool fails_closed = false;
    // 0: no rule has raised it.
    uint64_t raised_until_ns = 0;
    uint32_t raised_by = 0;  // the tracer whose rule it was
    // The tracer that feeds its rules; 0: it has none.
    uint32_t feed = 0;
    // kRules only: they know whose they are.
    std::shared_ptr<RuleRunner> rules;
  };
  using Entries = std::map<uint32_t, Entry>;  // by id

  explicit TracerRegistry(TracedMount mount);
  ~TracerRegistry();

  // The id of the first tracer of the next config.
  uint32_t next_id() const { return next_id_; }

  // Starts tracers, all or none. `ids`, which may be null, gets those of all
  // that do not feed rules.
  Status Add(std::vector<TracerPlan> plans, std::vector<uint32_t>* ids);
  // Ends one, as "stop", after its rules have looked at all that has happened.
  // kInvalid, here and below, if there is none, or it feeds rules.
  Status Remove(uint32_t id);
  // Another daemon goes on with all of them, and rules with nothing that they
  // had counted or done: says so in the traces that they may have changed.
  void TellRulesBegin();
  // Ends all rules likewise. Before the pipeline stops; nothing is added then.
  void StopRules();

  // Its rules are suspended and resumed with it.
  Status Suspend(uint32_t id);
  Status Resume(uint32_t id) { return SetRunning(id, true); }
  Status SetFilter(uint32_t id, const Filter& filter);
  // Its rules mean other tracers from now on, one for each action that names
  // one, in order. kInvalid if that is another number of them.
  Status Bind(uint32_t id, std::span<const uint32_t> targets);
  // It runs with another filter for a while, for a rule of the tracer `by`.
  Status Raise(uint32_t by, const RuleAction& action);
  // Those for which `is_over` become what they were.
  void EndRaises(const std::function<bool(const Entry&)>& is_over);

  // Whether some tracer has had the mount stay shut if its daemon dies.
  bool stays_shut() const { return stays_shut_.load(); }

  // Neither suspended nor gone.
  bool IsRunning(uint32_t id) const;
  // As they are now.
  Entries All() const;
  std::vector<RuleTotals> TotalsOfRules() const;

 private:
  Status Prepare(TracerPlan* plan, Entry* entry);
  void GiveBack(uint32_t id, Entry entry);
  Status End(uint32_t id);
  void Release(uint32_t id);
  void EndHoldsOf(uint32_t id);
  void StopRulesOf(uint32_t id);
  void ChangeFile(uint32_t id, const OutputFileId& file, bool written);
  void Changed();
  Status SetRunning(uint32_t id, bool run);
  Status SwapFilter(uint32_t id, const Filter& filter);
  void Change(uint32_t id, const std::function<void(Entry&)>& change);
  Status CheckSteerable(uint32_t id) const;

  const TracedMount mount_;
  const NeedLeases leases_;
  const std::unique_ptr<AlarmHandler> actions_;
  std::atomic<bool> stays_shut_{false};
  uint32_t next_id_ = 1;
  uint32_t next_other_id_;

  // Lock order: steer_mu_ before mu_. One command, or one rule, changes what a
  // tracer does at a time.
  std::mutex steer_mu_;
  mutable std::mutex mu_;
  Entries entries_;  // guarded by mu_
};

// The rules of a tracer; null if it has none. They live as long as `entries`.
const std::vector<Rule>* RulesOfTracer(const TracerRegistry::Entries& entries,
                                       uint32_t id);

}  // namespace tracefs
