#include "tracefs/pipeline/pipeline.h"

#include <algorithm>

#include "tracefs/base/clock.h"

namespace tracefs {
namespace {

using Entry = TracerSet::Entry;

void StopAll(const std::vector<std::shared_ptr<Tracer>>& tracers) {
  for (const std::shared_ptr<Tracer>& tracer : tracers) {
    static_cast<void>(tracer->Stop("error"));
  }
}

Status NoTracer(uint32_t id) {
  return Status::Invalid("no tracer " + std::to_string(id));
}

}  // namespace

Pipeline::Pipeline(std::chrono::milliseconds flush_interval)
    : set_(std::make_shared<TracerSet>()),
      flusher_(flush_interval, changes_, set_, slots()) {
  Show(*set_);
}

Pipeline::~Pipeline() { static_cast<void>(Stop("destroyed")); }

Status Pipeline::Add(TracerParts parts) {
  std::vector<TracerParts> all;
  all.push_back(std::move(parts));
  return Add(std::move(all));
}

Status Pipeline::Add(std::vector<TracerParts> parts) {
  {
    std::lock_guard change(changes_);
    if (Status s = flusher_.Start(); !s.ok()) return s;
  }
  // Outputs may take time to open: nothing waits for that.
  std::vector<std::shared_ptr<Tracer>> started;
  for (TracerParts& one : parts) {
    auto tracer =
        std::make_shared<Tracer>(std::move(one), [this] { return Oldest(); });
    if (Status s = tracer->Start(); !s.ok()) {
      StopAll(started);
      return s;
    }
    started.push_back(std::move(tracer));
  }
  std::unique_lock change(changes_);
  std::unique_ptr<TracerSet> next = Next();
  for (const std::shared_ptr<Tracer>& tracer : started) {
    if (Status s = next->Join(
            {tracer, tracer->plans(), std::make_shared<Tally>()}, *set_);
        !s.ok()) {
      change.unlock();
      StopAll(started);
      return s;
    }
  }
  Publish(std::move(next));
  // Files opened from now on are recorded, or listed, or both.
  if (file_states_ != nullptr) {
    for (const auto& tracer : started) tracer->SubmitOpenFiles(*file_states_);
  }
  return Status::Ok();
}

Status Pipeline::Remove(uint32_t id, std::string_view end_reason,
                        TracerStats* last) {
  std::optional<Entry> removed;
  {
    std::lock_guard change(changes_);
    std::unique_ptr<TracerSet> next = Next();
    removed = TracerSet::Take(id, &next->running);
    if (!removed) removed = TracerSet::Take(id, &next->suspended);
    if (!removed) return NoTracer(id);
    Publish(std::move(next));
  }
  // It is not known elsewhere any more, so nothing waits for its output.
  Status stopped = removed->tracer->Stop(end_reason);
  if (last != nullptr) {
    removed->tracer->AddTo(last);
    removed->before->AddTo(last);
  }
  return stopped;
}

Status Pipeline::Stop(std::string_view end_reason,
                      std::vector<TracerStats>* last) {
  Status first;
  for (TracerStats& tracer : Stats()) {
    TracerStats end;
    if (Status s = Remove(tracer.id, end_reason, &end); !s.ok() && first.ok()) {
      first = s;
    }
    if (last != nullptr) last->push_back(std::move(end));
  }
  return first;
}

Status Pipeline::Suspend(uint32_t id) { return SetRunning(id, false); }
Status Pipeline::Resume(uint32_t id) { return SetRunning(id, true); }

Status Pipeline::SetRunning(uint32_t id, bool run) {
  std::lock_guard change(changes_);
  std::unique_ptr<TracerSet> next = Next();
  const std::optional<Entry> entry =
      TracerSet::Take(id, run ? &next->suspended : &next->running);
  if (!entry) return next->Find(id) != nullptr ? Status::Ok() : NoTracer(id);
  if (!run) {
    next->suspended.push_back(*entry);
  } else if (Status s = next->Join(*entry, *set_); !s.ok()) {
    return s;
  }
  Publish(std::move(next));
  entry->tracer->SubmitChange(
      {.from_ns = MonotonicNs(),
       .properties = {{"tracer.state", run ? "running" : "stopped"}}});
  if (run && file_states_ != nullptr) {
    entry->tracer->SubmitOpenFiles(*file_states_);
  }
  return Status::Ok();
}

void Pipeline::Tell(const format::ChangeRecord& change) {
  std::lock_guard lock(changes_);
  for (const auto* const entries : {&set_->running, &set_->suspended}) {
    for (const Entry& entry : *entries) entry.tracer->SubmitChange(change);
  }
}

void Pipeline::Tell(uint32_t id, const format::ChangeRecord& change) {
  std::lock_guard lock(changes_);
  const Entry* const entry = set_->Find(id);
  if (entry != nullptr) entry->tracer->SubmitChange(change);
}

Status Pipeline::SetFilter(uint32_t id, std::unique_ptr<InputFilter> filter,
                           std::string_view text, std::string_view dag) {
  std::lock_guard change(changes_);
  std::unique_ptr<TracerSet> next = Next();
  Entry* const entry = next->Find(id);
  if (entry == nullptr) return NoTracer(id);
  const std::shared_ptr<Tracer> tracer = entry->tracer;
  entry->plans = tracer->PlansWith(std::move(filter));
  Publish(std::move(next));
  tracer->SubmitChange(
      {.from_ns = MonotonicNs(),
       .properties = {{"filter.text", text}, {"filter.dag", dag}}});
  return Status::Ok();
}

Status Pipeline::Tell(uint32_t id, const format::AlarmRecord& alarm,
                      const format::AlarmValues& values) {
  std::lock_guard change(changes_);
  const Entry* const entry = set_->Find(id);
  if (entry == nullptr) return NoTracer(id);
  entry->tracer->SubmitAlarm(alarm, values);
  return Status::Ok();
}

bool Pipeline::Append(ByteSpan messages) {
  std::lock_guard lock(changes_);
  bool all = true;
  for (const auto* const entries : {&set_->running, &set_->suspended}) {
    for (const Entry& entry : *entries) {
      all &= entry.tracer->SubmitMessages(messages);
    }
  }
  return all;
}

Status Pipeline::FlushAll() {
  std::lock_guard change(changes_);
  return flusher_.FlushAll();
}

void Pipeline::KeepAll() {
  std::lock_guard change(changes_);
  flusher_.KeepAll();
}

std::vector<TracerStats> Pipeline::Stats() const {
  std::vector<TracerStats> all;
  std::lock_guard lock(set_mu_);
  const std::vector<std::shared_ptr<ThreadSlot>> all_slots = slots().All();
  for (const auto* list : {&set_->running, &set_->suspended}) {
    for (const Entry& e : *list) {
      TracerStats& stats = all.emplace_back();
      stats.running = list == &set_->running;
      e.tracer->AddTo(&stats);
      e.before->AddTo(&stats);
      if (!stats.running) continue;
      for (const std::shared_ptr<ThreadSlot>& slot : all_slots) {
        slot->tallies[e.position].AddTo(&stats);
      }
    }
  }
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  return all;
}

void Pipeline::ForEachTotal(const UseTotal& use) {
  // Its holder may be waiting for an output; what was collected a moment ago
  // must suffice then.
  if (std::unique_lock change(changes_, std::try_to_lock); change.owns_lock()) {
    for (const Entry& e : set_->running) flusher_.CollectCounts(e);
  }
  const std::shared_ptr<const TracerSet> set = Tracers();
  for (const auto* list : {&set->running, &set->suspended}) {
    for (const Entry& e : *list) {
      uint32_t number = 0;
      for (const std::shared_ptr<EventCounter>& counter :
           e.tracer->counters()) {
        ++number;
        counter->ForEachTotal([&](format::AggregateRecord record) {
          record.tracer_id = e.tracer->id();
          record.aggregate = number;
          use(e.tracer->name(), record);
        });
      }
    }
  }
}

std::vector<Interested> Pipeline::WhoWants(Op op) const {
  const std::shared_ptr<const TracerSet> set = Tracers();
  std::vector<Interested> all;
  for (const Entry& e : set->running) {
    const OpPlans::OpPlan& plan = e.plans->plan(op);
    if (!plan.record && !plan.before) continue;
    all.push_back(
        {e.tracer->id(), e.tracer->name(), e.plans->filter().Describe(op)});
  }
  return all;
}

// Nothing still to come has an earlier time.
uint64_t Pipeline::Oldest() const {
  // In this order: an operation that begins to hold back meanwhile begins
  // later.
  const uint64_t oldest = slots().OldestBegin();
  return std::min(oldest, held_since_.load(std::memory_order_seq_cst));
}

ProcessNeeds Pipeline::Wanted() const {
  return {.records = process_records_.load(std::memory_order_relaxed),
          .environment = process_environment_.load(std::memory_order_relaxed)};
}

void Pipeline::HoldBack(uint64_t since_ns) {
  held_since_.store(since_ns, std::memory_order_seq_cst);
}

void Pipeline::Take(const ProcessRecord& record) {
  for (const Entry& e : Tracers()->running) e.tracer->RecordProcess(record);
}

void Pipeline::NoteOverrun(uint64_t count, uint64_t first_ns,
                           uint64_t last_ns) {
  for (const Entry& e : Tracers()->running) {
    e.tracer->NoteOverrun(std::max<uint64_t>(count, 1), first_ns, last_ns);
  }
}

std::shared_ptr<const TracerSet> Pipeline::Tracers() const {
  std::lock_guard lock(set_mu_);
  return set_;
}

// A set to change and publish. Called with changes_ held, as what follows.
std::unique_ptr<TracerSet> Pipeline::Next() const {
  auto next = std::make_unique<TracerSet>(*set_);
  ++next->generation;
  return next;
}

// Makes `next` the set of tracers, waits until no thread uses the old one, and
// collects what the tracers that no longer run left in the slots.
void Pipeline::Publish(std::unique_ptr<TracerSet> next) {
  std::shared_ptr<const TracerSet> old;
  {
    std::lock_guard lock(set_mu_);
    old = std::move(set_);
    set_ = std::move(next);
  }
  Show(*set_);
  ProcessNeeds wishes;
  for (const Entry& e : set_->running) {
    wishes.records |= e.tracer->process_needs().records;
    wishes.environment |= e.tracer->process_needs().environment;
  }
  process_records_.store(wishes.records, std::memory_order_relaxed);
  process_environment_.store(wishes.environment, std::memory_order_relaxed);
  // A slot that is made after this begins with the new set.
  const std::vector<std::shared_ptr<ThreadSlot>> all_slots = slots().All();
  for (const std::shared_ptr<ThreadSlot>& slot : all_slots) {
    RevokerSection visit(slot->lock);
  }
  {
    // For these the threads count no more.
    std::lock_guard lock(set_mu_);
    for (const Entry& e : old->running) {
      if (set_->Uses(e.position)) continue;
      for (const std::shared_ptr<ThreadSlot>& slot : all_slots) {
        slot->tallies[e.position].MoveTo(e.before.get());
      }
    }
  }
  for (const Entry& e : old->running) {
    if (set_->Uses(e.position)) continue;
    e.tracer->SubmitProcesses();
    for (const std::shared_ptr<ThreadSlot>& slot : all_slots) {
      std::unique_ptr<BlockBuilder> builder;
      {
        RevokerSection section(slot->lock);
        builder = std::move(slot->builders[e.position]);
      }
      if (!builder) continue;
      e.tracer->TakeCounts(*builder);
      e.tracer->AddUpCounts();
      e.tracer->SubmitFrom(*builder);
    }
  }
}

}  // namespace tracefs
