#include "tracefs/pipeline/pipeline.h"

#include <pthread.h>

#include <algorithm>
#include <limits>

#include "tracefs/base/clock.h"

namespace tracefs {

// What one thread has counted for one tracer.
struct Pipeline::Tally {
  OwnedCounter seen;
  OwnedCounter matched;
  OwnedCounter encoded;
  OwnedCounter counted;
  OwnedCounter filter_samples;
  OwnedCounter filter_ns;
  OwnedCounter encode_samples;
  OwnedCounter encode_ns;

  void AddTo(TracerStats* stats) const {
    stats->seen += seen.Get();
    stats->matched += matched.Get();
    stats->encoded += encoded.Get();
    stats->counted += counted.Get();
    stats->filter_samples += filter_samples.Get();
    stats->filter_ns += filter_ns.Get();
    stats->encode_samples += encode_samples.Get();
    stats->encode_ns += encode_ns.Get();
  }
  void MoveTo(Tally* sum) {
    sum->seen.Add(seen.TakeAll());
    sum->matched.Add(matched.TakeAll());
    sum->encoded.Add(encoded.TakeAll());
    sum->counted.Add(counted.TakeAll());
    sum->filter_samples.Add(filter_samples.TakeAll());
    sum->filter_ns.Add(filter_ns.TakeAll());
    sum->encode_samples.Add(encode_samples.TakeAll());
    sum->encode_ns.Add(encode_ns.TakeAll());
  }
};

// What all threads see of the tracers: immutable, replaced as a whole.
struct Pipeline::Set {
  struct Entry {
    std::shared_ptr<Tracer> tracer;
    std::shared_ptr<const TracerRules> rules;
    // What was counted before it was suspended. Guarded by set_mu_.
    std::shared_ptr<Tally> before;
    // In Slot::builders and Slot::tallies; kept while the tracer runs.
    size_t position = 0;
    // Generation of the set in which it first had this position.
    uint32_t since = 0;
  };
  std::vector<Entry> entries;    // running
  std::vector<Entry> suspended;  // their positions mean nothing
  uint32_t generation = 0;

  bool Uses(size_t position) const {
    return std::any_of(entries.begin(), entries.end(),
                       [&](const Entry& e) { return e.position == position; });
  }
};

struct Pipeline::Slot {
  explicit Slot(uint32_t slot_number) : number(slot_number) {}

  const uint32_t number;  // from 1 on: BlockInfo::source
  BiasedLock lock;
  // Guarded by lock; made by the owner on first use.
  std::array<std::unique_ptr<BlockBuilder>, kMaxTracers> builders;
  // Changed under lock.
  std::array<Tally, kMaxTracers> tallies;
  // Earliest begin of what the builders hold; 0 = they are empty. Written by
  // whoever holds the lock, read by anyone.
  std::atomic<uint64_t> open_since{0};
  // Begin of the operation that the owner is at; 0 = it is at none, kEntering =
  // it reads the clock. Written by the owner, read by anyone.
  static constexpr uint64_t kEntering = 1;
  std::atomic<uint64_t> running_since{0};
  // MustRecordNow said that the builders have all names that the operation
  // needs: they keep them until it is recorded. Guarded by lock.
  bool names_promised = false;
  std::atomic<bool> owned{true};
};

namespace {

std::atomic<uint64_t> next_instance{1};

}  // namespace

// A thread's use of a slot; when the thread ends another may take it over,
// with what it holds.
class Pipeline::SlotHandle {
 public:
  ~SlotHandle() { Drop(); }
  Slot* Find(uint64_t instance) const {
    return instance == instance_ ? slot_.get() : nullptr;
  }
  void Set(uint64_t instance, std::shared_ptr<Slot> slot) {
    Drop();
    instance_ = instance;
    slot_ = std::move(slot);
  }

 private:
  void Drop() {
    if (slot_) slot_->owned.store(false, std::memory_order_release);
    slot_.reset();
  }

  uint64_t instance_ = 0;
  std::shared_ptr<Slot> slot_;
};

Pipeline::Pipeline(std::chrono::milliseconds flush_interval)
    : flush_interval_(flush_interval),
      instance_(next_instance.fetch_add(1)),
      set_owner_(std::make_unique<Set>()) {
  set_.store(set_owner_.get(), std::memory_order_release);
}

Pipeline::~Pipeline() {
  (void)Stop("destroyed");
  {
    std::lock_guard lock(flusher_mu_);
    stopping_ = true;
  }
  flusher_wake_.notify_all();
  if (flusher_.joinable()) flusher_.join();
}

Pipeline::Slot& Pipeline::SlotOfThread() const {
  thread_local SlotHandle handle;
  if (Slot* slot = handle.Find(instance_)) return *slot;
  std::lock_guard lock(slots_mu_);
  for (const std::shared_ptr<Slot>& slot : slots_) {
    bool expected = false;
    if (slot->owned.compare_exchange_strong(expected, true)) {
      handle.Set(instance_, slot);
      return *slot;
    }
  }
  slots_.push_back(
      std::make_shared<Slot>(static_cast<uint32_t>(slots_.size() + 1)));
  handle.Set(instance_, slots_.back());
  return *slots_.back();
}

namespace {

void StopAll(const std::vector<std::shared_ptr<Tracer>>& tracers) {
  for (const std::shared_ptr<Tracer>& tracer : tracers) {
    static_cast<void>(tracer->Stop("error"));
  }
}

Status NoTracer(uint32_t id) {
  return Status::Invalid("no tracer " + std::to_string(id));
}

}  // namespace

Status Pipeline::Add(TracerParts parts) {
  std::vector<TracerParts> all;
  all.push_back(std::move(parts));
  return Add(std::move(all));
}

Status Pipeline::Add(std::vector<TracerParts> parts) {
  // Outputs may take their time to open: nobody waits for that.
  std::vector<std::shared_ptr<Tracer>> started;
  for (TracerParts& one : parts) {
    auto tracer = std::make_shared<Tracer>(
        std::move(one), [this] { return OldestOpenBegin(); });
    if (Status s = tracer->Start(); !s.ok()) {
      StopAll(started);
      return s;
    }
    started.push_back(std::move(tracer));
  }
  std::unique_lock change(changes_);
  auto next = std::make_unique<Set>(*set_owner_);
  for (const std::shared_ptr<Tracer>& tracer : started) {
    if (Status s = Join(next.get(), tracer, tracer->rules()); !s.ok()) {
      change.unlock();
      StopAll(started);
      return s;
    }
  }
  Publish(std::move(next));
  if (!flusher_.joinable()) {
    flusher_ = std::thread([this] { FlusherLoop(); });
  }
  return Status::Ok();
}

// Gives a tracer a place among those of `next` that run.
Status Pipeline::Join(Set* next, std::shared_ptr<Tracer> tracer,
                      std::shared_ptr<const TracerRules> rules) const {
  size_t position = 0;
  // A position that the present set uses is not given away in the same change:
  // its builders are still to be emptied.
  while (position < kMaxTracers &&
         (next->Uses(position) || set_owner_->Uses(position))) {
    ++position;
  }
  if (position == kMaxTracers) {
    return Status::Invalid("more than " + std::to_string(kMaxTracers) +
                           " tracers run; stop one first");
  }
  next->entries.push_back({std::move(tracer), std::move(rules),
                           std::make_shared<Tally>(), position,
                           set_owner_->generation + 1});
  return Status::Ok();
}

// Where the tracer is in `set`.
Status Pipeline::Find(uint32_t id, const Set* set, size_t* index,
                      bool* running) const {
  for (const bool in_entries : {true, false}) {
    const auto& list = in_entries ? set->entries : set->suspended;
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i].tracer->id() != id) continue;
      *index = i;
      *running = in_entries;
      return Status::Ok();
    }
  }
  return NoTracer(id);
}

Status Pipeline::Remove(uint32_t id, std::string_view end_reason,
                        TracerStats* last) {
  std::shared_ptr<Tracer> tracer;
  {
    std::lock_guard change(changes_);
    auto next = std::make_unique<Set>(*set_owner_);
    size_t index = 0;
    bool running = false;
    if (Status s = Find(id, next.get(), &index, &running); !s.ok()) return s;
    auto& list = running ? next->entries : next->suspended;
    tracer = list[index].tracer;
    list.erase(list.begin() + static_cast<ptrdiff_t>(index));
    Publish(std::move(next));
  }
  // Nobody else knows it any more, so nobody waits for its output.
  Status stopped = tracer->Stop(end_reason);
  if (last != nullptr) tracer->AddTo(last);
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

Status Pipeline::Suspend(uint32_t id) {
  std::lock_guard change(changes_);
  auto next = std::make_unique<Set>(*set_owner_);
  size_t index = 0;
  bool running = false;
  if (Status s = Find(id, next.get(), &index, &running); !s.ok()) return s;
  if (!running) return Status::Ok();
  const std::shared_ptr<Tracer> tracer = next->entries[index].tracer;
  next->suspended.push_back(next->entries[index]);
  next->entries.erase(next->entries.begin() + static_cast<ptrdiff_t>(index));
  Publish(std::move(next));
  tracer->SubmitChange(
      {.from_ns = MonotonicNs(), .properties = {{"tracer.state", "stopped"}}});
  return Status::Ok();
}

Status Pipeline::Resume(uint32_t id) {
  std::lock_guard change(changes_);
  auto next = std::make_unique<Set>(*set_owner_);
  size_t index = 0;
  bool running = false;
  if (Status s = Find(id, next.get(), &index, &running); !s.ok()) return s;
  if (running) return Status::Ok();
  const Set::Entry entry = next->suspended[index];
  if (Status s = Join(next.get(), entry.tracer, entry.rules); !s.ok()) return s;
  next->entries.back().before = entry.before;
  next->suspended.erase(next->suspended.begin() +
                        static_cast<ptrdiff_t>(index));
  Publish(std::move(next));
  entry.tracer->SubmitChange(
      {.from_ns = MonotonicNs(), .properties = {{"tracer.state", "running"}}});
  return Status::Ok();
}

Status Pipeline::SetFilter(uint32_t id, std::unique_ptr<InputFilter> filter,
                           std::string_view text, std::string_view dag) {
  std::lock_guard change(changes_);
  auto next = std::make_unique<Set>(*set_owner_);
  size_t index = 0;
  bool running = false;
  if (Status s = Find(id, next.get(), &index, &running); !s.ok()) return s;
  Set::Entry& entry = (running ? next->entries : next->suspended)[index];
  const std::shared_ptr<Tracer> tracer = entry.tracer;
  entry.rules = tracer->RulesWith(std::move(filter));
  Publish(std::move(next));
  tracer->SubmitChange(
      {.from_ns = MonotonicNs(),
       .properties = {{"filter.text", text}, {"filter.dag", dag}}});
  return Status::Ok();
}

Status Pipeline::Tell(uint32_t id, const format::AlarmRecord& alarm,
                      const format::AlarmValues& values) {
  std::lock_guard change(changes_);
  const Set& set = *set_owner_;
  size_t index = 0;
  bool running = false;
  if (Status s = Find(id, &set, &index, &running); !s.ok()) return s;
  (running ? set.entries : set.suspended)[index].tracer->SubmitAlarm(alarm,
                                                                     values);
  return Status::Ok();
}

std::vector<TracerStats> Pipeline::Stats() const {
  std::vector<TracerStats> all;
  std::lock_guard lock(set_mu_);
  const std::vector<std::shared_ptr<Slot>> slots = Slots();
  for (const bool running : {true, false}) {
    const auto& list = running ? set_owner_->entries : set_owner_->suspended;
    for (const Set::Entry& e : list) {
      TracerStats& stats = all.emplace_back();
      stats.running = running;
      e.tracer->AddTo(&stats);
      e.before->AddTo(&stats);
      if (!running) continue;
      for (const std::shared_ptr<Slot>& slot : slots) {
        slot->tallies[e.position].AddTo(&stats);
      }
    }
  }
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  return all;
}

std::vector<Interested> Pipeline::WhoWants(Op op) const {
  std::shared_ptr<const Set> set;
  {
    std::lock_guard lock(set_mu_);
    set = set_owner_;
  }
  std::vector<Interested> all;
  for (const Set::Entry& e : set->entries) {
    const TracerRules::OpPlan& plan = e.rules->plan(op);
    if (!plan.record && !plan.before) continue;
    all.push_back(
        {e.tracer->id(), e.tracer->name(), e.rules->filter().Describe(op)});
  }
  return all;
}

// Makes `next` the set of tracers, waits until no thread uses the old one, and
// submits what the tracers that no longer run left in the slots.
void Pipeline::Publish(std::unique_ptr<Set> next) {
  next->generation = set_owner_->generation + 1;
  std::shared_ptr<const Set> old;
  {
    std::lock_guard lock(set_mu_);
    old = std::move(set_owner_);
    set_owner_ = std::move(next);
  }
  set_.store(set_owner_.get(), std::memory_order_seq_cst);
  UpdateInterest(*set_owner_);

  // A slot that is made after this begins with the new set.
  const std::vector<std::shared_ptr<Slot>> slots = Slots();
  for (const std::shared_ptr<Slot>& slot : slots) {
    RevokerSection visit(slot->lock);
  }
  CollectTallies(*old);
  for (const Set::Entry& e : old->entries) {
    if (set_owner_->Uses(e.position)) continue;
    for (const std::shared_ptr<Slot>& slot : slots) {
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

// Adds up what all threads have counted for a tracer. Called with changes_
// held, so that the set stays.
void Pipeline::CollectCounts(const Tracer& tracer, size_t position) const {
  if (!tracer.counts()) return;
  for (const std::shared_ptr<Slot>& slot : Slots()) {
    {
      // The owner waits outside for as long as it takes to swap a pointer.
      RevokerSection section(slot->lock);
      const std::unique_ptr<BlockBuilder>& builder = slot->builders[position];
      if (!builder) continue;
      tracer.TakeCounts(*builder);
    }
    tracer.AddUpCounts();
  }
}

void Pipeline::ForEachTotal(const UseTotal& use) {
  // Whoever holds it may be waiting for an output; what was collected a moment
  // ago must do then.
  if (std::unique_lock change(changes_, std::try_to_lock); change.owns_lock()) {
    for (const Set::Entry& e : set_owner_->entries) {
      CollectCounts(*e.tracer, e.position);
    }
  }
  std::shared_ptr<const Set> set;
  {
    std::lock_guard lock(set_mu_);
    set = set_owner_;
  }
  for (const auto* list : {&set->entries, &set->suspended}) {
    for (const Set::Entry& e : *list) {
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

// Takes what the threads have counted for tracers that no longer run; they
// count for them no more.
void Pipeline::CollectTallies(const Set& old) {
  std::lock_guard lock(set_mu_);
  const std::vector<std::shared_ptr<Slot>> slots = Slots();
  for (const Set::Entry& e : old.entries) {
    if (set_owner_->Uses(e.position)) continue;
    for (const std::shared_ptr<Slot>& slot : slots) {
      slot->tallies[e.position].MoveTo(e.before.get());
    }
  }
}

std::vector<std::shared_ptr<Pipeline::Slot>> Pipeline::Slots() const {
  std::lock_guard lock(slots_mu_);
  return slots_;
}

void Pipeline::UpdateInterest(const Set& set) {
  for (size_t i = 0; i < kOpCount; ++i) {
    uint32_t bits = 0;
    for (const Set::Entry& e : set.entries) {
      const TracerRules::OpPlan& plan = e.rules->plan(static_cast<Op>(i));
      if (plan.record || plan.before) bits |= kRecord;
      if (plan.before) bits |= EventSink::kBefore;
      if (plan.caller) bits |= kCaller;
      if ((plan.record || plan.before) &&
          e.tracer->when_full() == LossPolicy::kFail) {
        bits |= kGate;
      }
      if (plan.data) bits |= kData;
      if (plan.names) bits |= kNames;
      if (plan.decide_early || (plan.record && e.tracer->unbuffered())) {
        bits |= kBeforeReply;
      }
      // Who it was matters only for what the filter keeps: the filter decides
      // first and the caller of a dropped event is never looked up.
      if (plan.caller && !plan.always) {
        bits |= kBeforeReply;
      }
    }
    // Where the filter runs before the reply, it resolves the caller if need
    // be.
    if ((bits & kBeforeReply) != 0) bits &= ~uint32_t{kCaller};
    interest_[i].store(bits, std::memory_order_relaxed);
  }
}

namespace {

BlockBuilder& BuilderFor(std::unique_ptr<BlockBuilder>& builder,
                         const Tracer& tracer, uint32_t source) {
  if (!builder) builder = tracer.MakeBuilder(source);
  return *builder;
}

void NoteOpen(std::atomic<uint64_t>& open_since, const Event& event) {
  const uint64_t begin = event.Get(Field::kTime);
  const uint64_t since = open_since.load(std::memory_order_relaxed);
  if (since == 0 || begin < since) {
    open_since.store(begin, std::memory_order_relaxed);
  }
}

constexpr uint64_t kSampling = TracerStats::kSampling;
static_assert((kSampling & (kSampling - 1)) == 0, "a mask is made of it");

}  // namespace

// Asks a tracer's filter, and counts.
bool Pipeline::Decide(const TracerRules& rules, bool always, Event& event,
                      Tally& tally) {
  const uint64_t seen = tally.seen.Add(1);
  if (always) {
    tally.matched.Add(1);
    return true;
  }
  bool keep;
  if ((seen & (kSampling - 1)) != 0) [[likely]] {
    keep = rules.filter().Keep(event);
  } else {
    const uint64_t begin = MonotonicNs();
    keep = rules.filter().Keep(event);
    tally.filter_ns.Add(MonotonicNs() - begin);
    tally.filter_samples.Add(1);
  }
  if (keep) tally.matched.Add(1);
  return keep;
}

// Has the tracer's counters and assembly drivers take an event.
inline void Pipeline::Assemble(Tracer& tracer, Event& event,
                               BlockBuilder& builder, Tally& tally) {
  if (tracer.counts() && !event.before) {
    tracer.Count(event, builder);
    tally.counted.Add(1);
  }
  if (tracer.makes_messages() && tracer.Record(event, builder)) {
    tally.encoded.Add(1);
  }
}

// The same, and some of them are timed.
void Pipeline::Encode(Tracer& tracer, Event& event, BlockBuilder& builder,
                      Tally& tally) {
  const uint64_t number = tally.encoded.Get() + tally.counted.Get() + 1;
  if ((number & (kSampling - 1)) != 0) [[likely]] {
    Assemble(tracer, event, builder, tally);
    return;
  }
  const Block* const block = &builder.block();
  const uint64_t begin = MonotonicNs();
  Assemble(tracer, event, builder, tally);
  const uint64_t ns = MonotonicNs() - begin;
  // Where a block was handed on, the time is that of the output.
  if (block != &builder.block()) return;
  tally.encode_ns.Add(ns);
  tally.encode_samples.Add(1);
}

uint64_t Pipeline::Enter() {
  std::atomic<uint64_t>& running = SlotOfThread().running_since;
  // A thread that stops between the two has told that it began something.
  running.store(Slot::kEntering, std::memory_order_relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const uint64_t begin = MonotonicNs();
  running.store(begin, std::memory_order_relaxed);
  return begin;
}

void Pipeline::Leave() {
  // What it recorded is to be seen first (NoteOpen).
  SlotOfThread().running_since.store(0, std::memory_order_release);
}

void Pipeline::Park(uint64_t begin_ns) {
  std::lock_guard lock(parked_mu_);
  parked_.insert(begin_ns);
}

void Pipeline::Unpark(uint64_t begin_ns) {
  std::lock_guard lock(parked_mu_);
  if (const auto one = parked_.find(begin_ns); one != parked_.end()) {
    parked_.erase(one);
  }
}

void Pipeline::Before(Event& event) {
  Slot& slot = SlotOfThread();
  OwnerSection section(slot.lock);
  const Set& set = *set_.load(std::memory_order_acquire);
  event.before = true;
  for (const Set::Entry& e : set.entries) {
    const TracerRules::OpPlan& plan = e.rules->plan(event.op);
    if (!plan.before) continue;
    if (!plan.always &&
        e.rules->filter().DecideEarly(event) == Verdict::kDrop) {
      continue;
    }
    if (plan.caller) event.NeedCaller();
    BlockBuilder& builder =
        BuilderFor(slot.builders[e.position], *e.tracer, slot.number);
    if (e.tracer->makes_messages()) NoteOpen(slot.open_since, event);
    Encode(*e.tracer, event, builder, slot.tallies[e.position]);
    if (e.tracer->unbuffered()) e.tracer->SubmitFrom(builder);
  }
  event.before = false;
}

void Pipeline::BeforeReply(Event& event) {
  Slot& slot = SlotOfThread();
  OwnerSection section(slot.lock);
  const Set& set = *set_.load(std::memory_order_acquire);
  event.sink_generation = set.generation;
  for (const Set::Entry& e : set.entries) {
    const TracerRules::OpPlan& plan = e.rules->plan(event.op);
    if (!plan.record) continue;
    Tally& tally = slot.tallies[e.position];
    const bool keep = Decide(*e.rules, plan.always, event, tally);
    const uint64_t bit = uint64_t{1} << e.position;
    event.sink_decided |= bit;
    if (!keep) continue;
    if (plan.caller) event.NeedCaller();
    if (!e.tracer->unbuffered()) {
      event.sink_keep |= bit;
      continue;
    }
    BlockBuilder& builder =
        BuilderFor(slot.builders[e.position], *e.tracer, slot.number);
    Encode(*e.tracer, event, builder, tally);
    e.tracer->SubmitFrom(builder);
  }
}

void Pipeline::AfterReply(Event& event) {
  Slot& slot = SlotOfThread();
  OwnerSection section(slot.lock);
  slot.names_promised = false;
  const Set& set = *set_.load(std::memory_order_acquire);
  for (const Set::Entry& e : set.entries) {
    const TracerRules::OpPlan& plan = e.rules->plan(event.op);
    if (!plan.record) continue;
    const uint64_t bit = uint64_t{1} << e.position;
    // A decision of BeforeReply stands, unless it is that of a tracer which
    // had this position before.
    const bool decided =
        (event.sink_decided & bit) != 0 && event.sink_generation >= e.since;
    Tally& tally = slot.tallies[e.position];
    const bool keep = decided ? (event.sink_keep & bit) != 0
                              : Decide(*e.rules, plan.always, event, tally);
    if (!keep) continue;
    if (e.tracer->makes_messages()) NoteOpen(slot.open_since, event);
    Encode(*e.tracer, event,
           BuilderFor(slot.builders[e.position], *e.tracer, slot.number),
           tally);
  }
}

bool Pipeline::MustRecordNow(const Event& event) {
  Slot& slot = SlotOfThread();
  OwnerSection section(slot.lock);
  slot.names_promised = HasAllNames(slot, event);
  return !slot.names_promised;
}

bool Pipeline::HasAllNames(const Slot& slot, const Event& event) const {
  const Set& set = *set_.load(std::memory_order_acquire);
  for (const Set::Entry& e : set.entries) {
    if (!e.rules->plan(event.op).record) continue;
    const uint64_t bit = uint64_t{1} << e.position;
    if ((event.sink_decided & bit) != 0 && (event.sink_keep & bit) == 0) {
      continue;
    }
    const std::unique_ptr<BlockBuilder>& builder = slot.builders[e.position];
    if (!builder || builder->nearly_full() ||
        !e.tracer->NamesDefined(event, *builder)) {
      return false;
    }
  }
  return true;
}

bool Pipeline::Refuses(Op op) {
  OwnerSection section(SlotOfThread().lock);
  const Set& set = *set_.load(std::memory_order_acquire);
  for (const Set::Entry& e : set.entries) {
    const TracerRules::OpPlan& plan = e.rules->plan(op);
    if ((!plan.record && !plan.before) || !e.tracer->refusing()) continue;
    e.tracer->NoteRefusal();
    return true;
  }
  return false;
}

bool Pipeline::MayRecord(Event& event) const {
  if (InterestIn(event.op) == 0) return false;
  OwnerSection section(SlotOfThread().lock);
  const Set& set = *set_.load(std::memory_order_acquire);
  return std::any_of(
      set.entries.begin(), set.entries.end(), [&](const Set::Entry& e) {
        const TracerRules::OpPlan& plan = e.rules->plan(event.op);
        return (plan.record || plan.before) &&
               (plan.always ||
                e.rules->filter().DecideForFile(event) != Verdict::kDrop);
      });
}

uint64_t Pipeline::OldestOpenBegin() const {
  // What a thread writes reaches others within less than this.
  constexpr uint64_t kSettledNs = 1'000'000;
  uint64_t oldest = MonotonicNs() - kSettledNs;
  // Unknown is 0: the reader waits for the next.
  std::unique_lock lock(slots_mu_, std::try_to_lock);
  if (!lock.owns_lock()) return 0;
  for (const std::shared_ptr<Slot>& slot : slots_) {
    // In this order: an operation that ends meanwhile is seen in one of them.
    const uint64_t running =
        slot->running_since.load(std::memory_order_acquire);
    if (running == Slot::kEntering) return 0;
    const uint64_t since = slot->open_since.load(std::memory_order_relaxed);
    if (running != 0) oldest = std::min(oldest, running);
    if (since != 0) oldest = std::min(oldest, since);
  }
  std::unique_lock parked(parked_mu_, std::try_to_lock);
  if (!parked.owns_lock()) return 0;
  if (!parked_.empty()) oldest = std::min(oldest, *parked_.begin());
  return oldest;
}

Status Pipeline::FlushAll() {
  std::lock_guard change(changes_);
  // A thread that is between its reply and its record gets a moment.
  constexpr int kTries = 50;
  for (int i = 0; i < kTries && !FlushOnce(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  Status first;
  for (const Set::Entry& e : set_owner_->entries) {
    e.tracer->SubmitLosses();
    if (Status s = e.tracer->Flush(); !s.ok() && first.ok()) {
      first = s.Prefixed("tracer " + std::to_string(e.tracer->id()));
    }
  }
  return first;
}

// Takes the blocks out of every slot and submits them, but those whose names
// are still needed: false if there were any. Called with changes_ held, so that
// the set stays.
bool Pipeline::FlushOnce() {
  bool all = true;
  const std::vector<std::shared_ptr<Slot>> slots = Slots();
  for (const Set::Entry& e : set_owner_->entries) {
    std::unique_ptr<Block> block;
    for (const std::shared_ptr<Slot>& slot : slots) {
      if (slot->open_since.load(std::memory_order_relaxed) == 0) continue;
      if (!block) block = std::make_unique<Block>(e.tracer->block_bytes());
      {
        // The owner waits outside for as long as this takes: a pointer swap.
        // The output is written after.
        RevokerSection section(slot->lock);
        if (slot->names_promised) {
          all = false;
          continue;
        }
        const std::unique_ptr<BlockBuilder>& builder =
            slot->builders[e.position];
        if (!builder || builder->block().empty()) continue;
        block = builder->Take(std::move(block));
      }
      e.tracer->Submit(*block);
    }
  }
  for (const std::shared_ptr<Slot>& slot : slots) {
    if (slot->open_since.load(std::memory_order_relaxed) == 0) continue;
    RevokerSection section(slot->lock);
    uint64_t oldest = 0;
    for (const std::unique_ptr<BlockBuilder>& builder : slot->builders) {
      if (!builder || builder->block().empty()) continue;
      const uint64_t first = builder->block().first_ns;
      if (oldest == 0 || first < oldest) oldest = first;
    }
    slot->open_since.store(oldest, std::memory_order_relaxed);
  }
  return all;
}

void Pipeline::FlusherLoop() {
  ::pthread_setname_np(::pthread_self(), "tracefs-flush");
  std::unique_lock lock(flusher_mu_);
  while (!stopping_) {
    flusher_wake_.wait_for(lock, flush_interval_);
    if (stopping_) return;
    lock.unlock();
    // A change of tracers visits the slots itself; no need to queue behind it.
    if (std::unique_lock change(changes_, std::try_to_lock);
        change.owns_lock()) {
      static_cast<void>(FlushOnce());  // what is left, the next time
      const uint64_t now = MonotonicNs();
      for (const Set::Entry& e : set_owner_->entries) {
        if (e.tracer->CountsDue(now)) {
          CollectCounts(*e.tracer, e.position);
          e.tracer->SubmitCounts(/*end=*/false);
        }
        e.tracer->SubmitLosses();
        e.tracer->SubmitHeartbeat();
      }
      // One that is suspended lives, too.
      for (const Set::Entry& e : set_owner_->suspended) {
        if (e.tracer->CountsDue(now)) e.tracer->SubmitCounts(/*end=*/false);
        e.tracer->SubmitHeartbeat();
      }
    }
    lock.lock();
  }
}

}  // namespace tracefs
