#include "tracefs/tracers/registry.h"

#include <algorithm>
#include <utility>

#include "tracefs/base/clock.h"
#include "tracefs/event/system_call_names.h"
#include "tracefs/tracers/parts.h"
#include "tracefs/tracers/plan_facts.h"
#include "tracefs/tracers/rule_actions.h"

namespace tracefs {
namespace {

// Tracers that no config names have ids from here on: far from those of
// configs, which people count.
constexpr uint32_t kFirstOtherId = uint32_t{1} << 30;

}  // namespace

const std::vector<Rule>* RulesOfTracer(const TracerRegistry::Entries& entries,
                                       uint32_t id) {
  const auto host = entries.find(id);
  if (host == entries.end()) return nullptr;
  const auto feed = entries.find(host->second.feed);
  if (feed == entries.end() || feed->second.rules == nullptr) return nullptr;
  return &feed->second.rules->rules();
}

TracerRegistry::TracerRegistry(TracedMount mount)
    : mount_(std::move(mount)),
      leases_(mount_.processes, mount_.calls, mount_.watch),
      actions_(std::make_unique<RuleActions>(*this, mount_)),
      next_other_id_(kFirstOtherId) {}

TracerRegistry::~TracerRegistry() { StopRules(); }

// --- Tracers that come and go.

// The kernel may keep other things from now on, and forgets what it has.
void TracerRegistry::Changed() {
  if (mount_.forget_names) mount_.forget_names();
}

Status TracerRegistry::Add(std::vector<TracerPlan> plans,
                           std::vector<uint32_t>* ids) {
  if (mount_.stay_shut && FailsClosed(plans)) {
    if (Status s = mount_.stay_shut(); !s.ok()) {
      return s.Prefixed("the mount could not be told to stay shut");
    }
    stays_shut_.store(true);
  }
  std::vector<TracerParts> parts;
  Entries added;
  for (TracerPlan& plan : plans) {
    if (plan.parts.kind != TracerKind::kConfig) {
      SetId(next_other_id_++, &plan.parts);
    }
    const uint32_t id = plan.parts.id;
    if (Status s = Prepare(&plan, &added[id]); !s.ok()) {
      for (const auto& [other, entry] : added) GiveBack(other, entry);
      return s;
    }
    if (plan.parts.kind == TracerKind::kRules) {
      added[plan.rules_of].feed = id;
    } else if (ids != nullptr) {
      ids->push_back(id);
    }
    if (plan.parts.kind == TracerKind::kConfig) {
      next_id_ = std::max(next_id_, id + 1);
    }
    parts.push_back(std::move(plan.parts));
  }
  {
    // Before they run: an output may go on in another file at once, and a rule
    // that fires at once finds all tracers known.
    std::lock_guard lock(mu_);
    entries_.insert(added.begin(), added.end());
  }
  if (Status s = mount_.pipeline.Add(std::move(parts)); !s.ok()) {
    for (const auto& [id, entry] : added) Release(id);
    return s;
  }
  for (const auto& [id, entry] : added) {
    if (entry.needs.Has(Need::kProcesses) && mount_.watch != nullptr) {
      mount_.watch->TellWhoRuns();
      break;
    }
  }
  for (const auto& [id, entry] : added) {
    if (entry.rules == nullptr) continue;
    if (Status s = entry.rules->Start(); !s.ok()) {
      for (const auto& [other, _] : added) static_cast<void>(End(other));
      return s;
    }
  }
  Changed();
  return Status::Ok();
}

// Takes what the tracer needs, and moves into the entry what is no part of it.
Status TracerRegistry::Prepare(TracerPlan* plan, Entry* entry) {
  const uint32_t id = plan->parts.id;
  format::TraceHeader& header = plan->parts.header;
  for (const auto& [key, value] : mount_.header.properties) {
    header.Set(key, value);
  }
  entry->kind = plan->parts.kind;
  entry->drivers = header.Get("drivers");
  entry->output = header.Get("output.chain");
  entry->config = header.Get("config.text");
  entry->files = std::move(plan->files);
  for (const OutputFileId& file : entry->files) mount_.note_output(file, true);
  if (plan->file_change != nullptr) {
    *plan->file_change = [this, id](const OutputFileId& file, bool written) {
      ChangeFile(id, file, written);
    };
  }
  const NeedSet needs = NeedsOf(*plan);
  if (Status s = leases_.Take(needs, plan->filter_place + ": the tracer",
                              &entry->needs);
      !s.ok()) {
    return s;
  }
  if (needs.Has(Need::kCalls)) header.Set("syscalls", SystemCallTable());
  entry->flight = plan->flight != nullptr;
  entry->fails_closed = FailsClosed({plan, 1});
  entry->filter = std::move(plan->filter);
  if (entry->kind == TracerKind::kRules) {
    entry->rules = std::make_shared<RuleRunner>(
        plan->rules_of, std::move(plan->rules), *actions_);
    PutDriver(plan->parts.name, entry->rules->MakeOutput(), &plan->parts);
  }
  return plan->flight != nullptr ? mount_.snapshots.Add(id, plan->flight)
                                 : Status::Ok();
}

Status TracerRegistry::Remove(uint32_t id) {
  if (Status s = CheckSteerable(id); !s.ok()) return s;
  StopRulesOf(id);
  EndHoldsOf(id);
  std::lock_guard steer(steer_mu_);
  return End(id);
}

Status TracerRegistry::End(uint32_t id) {
  const Status status = mount_.pipeline.Remove(id, "stop");
  Release(id);
  return status;
}

// Gives back what Prepare has taken.
void TracerRegistry::GiveBack(uint32_t id, Entry entry) {
  mount_.snapshots.Remove(id);
  leases_.GiveBack(&entry.needs);
  for (const OutputFileId& file : entry.files) mount_.note_output(file, false);
}

void TracerRegistry::Release(uint32_t id) {
  Entries::node_type released;
  {
    std::lock_guard lock(mu_);
    released = entries_.extract(id);
    for (auto& [other, entry] : entries_) {
      if (entry.feed == id) entry.feed = 0;
    }
  }
  if (!released.empty()) GiveBack(id, std::move(released.mapped()));
}

// A tracer goes on in another file.
void TracerRegistry::ChangeFile(uint32_t id, const OutputFileId& file,
                                bool written) {
  Change(id, [&](Entry& entry) {
    mount_.note_output(file, written);
    if (written) {
      entry.files.push_back(file);
    } else {
      std::erase(entry.files, file);
    }
  });
}

// The rules of a tracer that is about to end. Without steer_mu_: they may be
// waiting for it.
void TracerRegistry::StopRulesOf(uint32_t id) {
  const Entries all = All();
  const auto host = all.find(id);
  if (host == all.end() || host->second.feed == 0) return;
  static_cast<void>(End(host->second.feed));
  all.at(host->second.feed).rules->Join();
  EndRaises([id](const Entry& other) { return other.raised_by == id; });
}

void TracerRegistry::TellRulesBegin() {
  const Entries all = All();
  if (std::ranges::none_of(all, [](const auto& entry) {
        return entry.second.kind == TracerKind::kRules;
      })) {
    return;
  }
  for (const auto& [id, entry] : all) {
    if (entry.kind != TracerKind::kConfig) continue;
    const std::string dag = entry.filter->general().Dump();
    mount_.pipeline.Tell(
        id, {.from_ns = MonotonicNs(),
             .properties = {
                 {"daemon.rules", "begin again"},
                 {"tracer.state", entry.suspended ? "stopped" : "running"},
                 {"filter.text", entry.filter->text()},
                 {"filter.dag", dag}}});
  }
}

void TracerRegistry::StopRules() {
  for (const auto& [id, entry] : All()) StopRulesOf(id);
}

// --- What is done to one of them.

Status TracerRegistry::CheckSteerable(uint32_t id) const {
  std::lock_guard lock(mu_);
  const auto found = entries_.find(id);
  if (found != entries_.end() && found->second.kind != TracerKind::kRules) {
    return Status::Ok();
  }
  return Status::Invalid("no tracer " + std::to_string(id));
}

// Nothing happens if it has gone.
void TracerRegistry::Change(uint32_t id,
                            const std::function<void(Entry&)>& change) {
  std::lock_guard lock(mu_);
  if (const auto found = entries_.find(id); found != entries_.end()) {
    change(found->second);
  }
}

void TracerRegistry::EndHoldsOf(uint32_t id) {
  if (mount_.holds != nullptr) mount_.holds->EndOf(id);
}

Status TracerRegistry::Suspend(uint32_t id) {
  const Status done = SetRunning(id, false);
  if (done.ok()) EndHoldsOf(id);
  return done;
}

Status TracerRegistry::SetRunning(uint32_t id, bool run) {
  const auto set = [&](uint32_t one) {
    return run ? mount_.pipeline.Resume(one) : mount_.pipeline.Suspend(one);
  };
  std::lock_guard steer(steer_mu_);
  if (Status s = CheckSteerable(id); !s.ok()) return s;
  if (Status s = set(id); !s.ok()) return s;
  uint32_t feed = 0;
  Change(id, [&](Entry& entry) {
    entry.suspended = !run;
    feed = entry.feed;
  });
  if (run) Changed();
  return feed != 0 ? set(feed) : Status::Ok();
}

Status TracerRegistry::SetFilter(uint32_t id, const Filter& filter) {
  std::lock_guard steer(steer_mu_);
  if (Status s = CheckSteerable(id); !s.ok()) return s;
  bool rests = false;
  Change(id, [&](Entry& entry) {
    rests = entry.raised_until_ns != 0 && entry.suspended;
  });
  if (Status s = SwapFilter(id, filter); !s.ok()) return s;
  Change(id, [&](Entry& entry) { entry.filter = filter; });
  // It ran only because it was raised, and that is over.
  return rests ? mount_.pipeline.Suspend(id) : Status::Ok();
}

// Its own filter stays what it was. With steer_mu_.
Status TracerRegistry::SwapFilter(uint32_t id, const Filter& filter) {
  NeedSet held;
  Change(id, [&](Entry& entry) { held = entry.needs; });
  // Not given back before the tracer ends: it may come back to this filter.
  if (Status s = leases_.Take(NeedsOf(filter), "the filter", &held); !s.ok()) {
    return s;
  }
  Change(id, [&](Entry& entry) { entry.needs = held; });
  if (Status s =
          mount_.pipeline.SetFilter(id, std::make_unique<Filter>(filter),
                                    filter.text(), filter.general().Dump());
      !s.ok()) {
    return s;
  }
  // It is not raised any more; who raises it says so afterwards.
  Change(id, [](Entry& entry) { entry.raised_until_ns = 0; });
  Changed();
  return Status::Ok();
}

Status TracerRegistry::Bind(uint32_t id, std::span<const uint32_t> targets) {
  const Entries all = All();
  const std::vector<Rule>* const rules = RulesOfTracer(all, id);
  static const std::vector<Rule> kNone;
  return SetTargets(rules != nullptr ? *rules : kNone, targets)
             ? Status::Ok()
             : Status::Invalid("the rules of tracer " + std::to_string(id) +
                               " name another number of tracers");
}

Status TracerRegistry::Raise(uint32_t by, const RuleAction& action) {
  const uint32_t id = action.tracer_id();
  std::lock_guard steer(steer_mu_);
  if (Status s = CheckSteerable(id); !s.ok()) return s;
  if (Status s = SwapFilter(id, *action.filter); !s.ok()) return s;
  if (Status s = mount_.pipeline.Resume(id); !s.ok()) return s;
  Changed();
  Change(id, [&](Entry& entry) {
    entry.raised_until_ns = MonotonicNs() + action.duration_ns;
    entry.raised_by = by;
  });
  return Status::Ok();
}

void TracerRegistry::EndRaises(
    const std::function<bool(const Entry&)>& is_over) {
  std::lock_guard steer(steer_mu_);
  for (const auto& [id, entry] : All()) {
    if (entry.raised_until_ns == 0 || !is_over(entry)) continue;
    // What it was raised for would soon be overwritten.
    if (entry.flight) static_cast<void>(mount_.snapshots.Take(id, "rule"));
    static_cast<void>(SwapFilter(id, *entry.filter));
    if (entry.suspended) static_cast<void>(mount_.pipeline.Suspend(id));
  }
}

// --- What others may know.

bool TracerRegistry::IsRunning(uint32_t id) const {
  std::lock_guard lock(mu_);
  const auto found = entries_.find(id);
  return found != entries_.end() && !found->second.suspended;
}

TracerRegistry::Entries TracerRegistry::All() const {
  std::lock_guard lock(mu_);
  return entries_;
}

std::vector<RuleTotals> TracerRegistry::TotalsOfRules() const {
  std::vector<RuleTotals> totals;
  for (const auto& [id, entry] : All()) {
    if (entry.rules != nullptr) entry.rules->AddTotals(MonotonicNs(), &totals);
  }
  return totals;
}

}  // namespace tracefs
