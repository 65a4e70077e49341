#include "tracefs/pipeline/pipeline.h"

#include <pthread.h>

#include <algorithm>
#include <limits>

#include "tracefs/base/clock.h"

namespace tracefs {

// What all threads see of the tracers: immutable, replaced as a whole.
struct Pipeline::Set {
  struct Entry {
    std::shared_ptr<Tracer> tracer;
    size_t position;  // in Slot::builders, kept while the tracer runs
    uint32_t since;   // generation of the set it first was in
  };
  std::vector<Entry> entries;
  uint32_t generation = 0;

  bool Uses(size_t position) const {
    return std::any_of(entries.begin(), entries.end(),
                       [&](const Entry& e) { return e.position == position; });
  }
};

struct Pipeline::Slot {
  BiasedLock lock;
  // Guarded by lock; made by the owner on first use.
  std::array<std::unique_ptr<BlockBuilder>, kMaxTracers> builders;
  // Earliest begin of what the builders hold; 0 = they are empty. Written by
  // whoever holds the lock, read by anyone.
  std::atomic<uint64_t> open_since{0};
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

Pipeline::Pipeline(PipelineOptions options)
    : options_(std::move(options)),
      instance_(next_instance.fetch_add(1)),
      set_owner_(std::make_unique<Set>()) {
  set_.store(set_owner_.get(), std::memory_order_release);
  flusher_ = std::thread([this] { FlusherLoop(); });
}

Pipeline::~Pipeline() {
  (void)Stop("destroyed");
  {
    std::lock_guard lock(flusher_mu_);
    stopping_ = true;
  }
  flusher_wake_.notify_all();
  flusher_.join();
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
  slots_.push_back(std::make_shared<Slot>());
  handle.Set(instance_, slots_.back());
  return *slots_.back();
}

Status Pipeline::Add(TracerParts parts) {
  std::lock_guard change(changes_);
  auto next = std::make_unique<Set>(*set_owner_);
  size_t position = 0;
  while (position < kMaxTracers && next->Uses(position)) ++position;
  if (position == kMaxTracers) {
    return Status::Invalid("more than 32 tracers; stop one first");
  }
  auto tracer = std::make_shared<Tracer>(std::move(parts),
                                         [this] { return OldestOpenBegin(); });
  if (Status s = tracer->Start(); !s.ok()) return s;
  next->entries.push_back(
      {std::move(tracer), position, set_owner_->generation + 1});
  Publish(std::move(next));
  return Status::Ok();
}

Status Pipeline::Remove(uint32_t id, std::string_view end_reason) {
  std::lock_guard change(changes_);
  auto next = std::make_unique<Set>(*set_owner_);
  const auto it =
      std::find_if(next->entries.begin(), next->entries.end(),
                   [&](const Set::Entry& e) { return e.tracer->id() == id; });
  if (it == next->entries.end()) {
    return Status::Invalid("no tracer " + std::to_string(id));
  }
  const std::shared_ptr<Tracer> tracer = it->tracer;
  next->entries.erase(it);
  Publish(std::move(next));
  return tracer->Stop(end_reason);
}

Status Pipeline::Stop(std::string_view end_reason) {
  Status first;
  std::vector<uint32_t> ids;
  ForEachTracer([&](const Tracer& t) { ids.push_back(t.id()); });
  for (const uint32_t id : ids) {
    if (Status s = Remove(id, end_reason); !s.ok() && first.ok()) first = s;
  }
  return first;
}

void Pipeline::ForEachTracer(
    const std::function<void(const Tracer&)>& visit) const {
  std::lock_guard change(changes_);
  for (const Set::Entry& e : set_owner_->entries) visit(*e.tracer);
}

// Makes `next` the set of tracers, waits until no thread uses the old one, and
// submits what the tracers that are no longer in it left in the slots.
void Pipeline::Publish(std::unique_ptr<Set> next) {
  const std::unique_ptr<const Set> old = std::move(set_owner_);
  next->generation = old->generation + 1;
  set_owner_ = std::move(next);
  set_.store(set_owner_.get(), std::memory_order_seq_cst);
  UpdateInterest(*set_owner_);

  // A slot that is made after this begins with the new set.
  const std::vector<std::shared_ptr<Slot>> slots = Slots();
  for (const std::shared_ptr<Slot>& slot : slots) {
    RevokerSection visit(slot->lock);
  }
  for (const Set::Entry& e : old->entries) {
    if (set_owner_->Uses(e.position)) continue;
    for (const std::shared_ptr<Slot>& slot : slots) {
      std::unique_ptr<BlockBuilder> builder;
      {
        RevokerSection section(slot->lock);
        builder = std::move(slot->builders[e.position]);
      }
      if (builder) e.tracer->SubmitFrom(*builder);
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
      const Tracer::OpPlan& plan = e.tracer->plan(static_cast<Op>(i));
      if (plan.record || plan.before) bits |= kRecord;
      if (plan.before) bits |= EventSink::kBefore;
      if (plan.caller) bits |= kCaller;
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
                         const Tracer& tracer) {
  if (!builder) builder = std::make_unique<BlockBuilder>(tracer.block_bytes());
  return *builder;
}

void NoteOpen(std::atomic<uint64_t>& open_since, const Event& event) {
  const uint64_t begin = event.Get(Field::kTime);
  const uint64_t since = open_since.load(std::memory_order_relaxed);
  if (since == 0 || begin < since) {
    open_since.store(begin, std::memory_order_relaxed);
  }
}

}  // namespace

void Pipeline::Before(Event& event) {
  Slot& slot = SlotOfThread();
  OwnerSection section(slot.lock);
  const Set& set = *set_.load(std::memory_order_acquire);
  event.before = true;
  for (const Set::Entry& e : set.entries) {
    const Tracer::OpPlan& plan = e.tracer->plan(event.op);
    if (!plan.before) continue;
    if (!plan.always &&
        e.tracer->filter().DecideEarly(event) == Verdict::kDrop) {
      continue;
    }
    if (plan.caller) event.NeedCaller();
    BlockBuilder& builder = BuilderFor(slot.builders[e.position], *e.tracer);
    NoteOpen(slot.open_since, event);
    e.tracer->Record(event, builder);
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
    const Tracer::OpPlan& plan = e.tracer->plan(event.op);
    if (!plan.record) continue;
    const bool keep = plan.always || e.tracer->filter().Keep(event);
    const uint64_t bit = uint64_t{1} << e.position;
    event.sink_decided |= bit;
    if (!keep) continue;
    if (plan.caller) event.NeedCaller();
    if (!e.tracer->unbuffered()) {
      event.sink_keep |= bit;
      continue;
    }
    BlockBuilder& builder = BuilderFor(slot.builders[e.position], *e.tracer);
    e.tracer->Record(event, builder);
    e.tracer->SubmitFrom(builder);
  }
}

void Pipeline::AfterReply(Event& event) {
  Slot& slot = SlotOfThread();
  OwnerSection section(slot.lock);
  const Set& set = *set_.load(std::memory_order_acquire);
  for (const Set::Entry& e : set.entries) {
    const Tracer::OpPlan& plan = e.tracer->plan(event.op);
    if (!plan.record) continue;
    const uint64_t bit = uint64_t{1} << e.position;
    // A decision of BeforeReply stands, unless it is that of a tracer which
    // had this position before.
    const bool decided =
        (event.sink_decided & bit) != 0 && event.sink_generation >= e.since;
    const bool keep = decided ? (event.sink_keep & bit) != 0
                              : plan.always || e.tracer->filter().Keep(event);
    if (!keep) continue;
    NoteOpen(slot.open_since, event);
    e.tracer->Record(event, BuilderFor(slot.builders[e.position], *e.tracer));
  }
}

bool Pipeline::MayRecord(Event& event) const {
  if (InterestIn(event.op) == 0) return false;
  OwnerSection section(SlotOfThread().lock);
  const Set& set = *set_.load(std::memory_order_acquire);
  return std::any_of(
      set.entries.begin(), set.entries.end(), [&](const Set::Entry& e) {
        const Tracer::OpPlan& plan = e.tracer->plan(event.op);
        return (plan.record || plan.before) &&
               (plan.always ||
                e.tracer->filter().DecideForFile(event) != Verdict::kDrop);
      });
}

uint64_t Pipeline::MatchName(std::string_view name) const {
  return options_.match_name ? options_.match_name(name) : 0;
}

uint64_t Pipeline::OldestOpenBegin() const {
  // An operation that is running now began a moment ago; a millisecond covers
  // nearly all. Readers cope with the rest (FORMAT.md, "Order").
  constexpr uint64_t kRunningNs = 1'000'000;
  uint64_t oldest = MonotonicNs() - kRunningNs;
  std::unique_lock lock(slots_mu_, std::try_to_lock);
  if (!lock.owns_lock()) return 0;  // unknown: the reader waits for the next
  for (const std::shared_ptr<Slot>& slot : slots_) {
    const uint64_t since = slot->open_since.load(std::memory_order_relaxed);
    if (since != 0) oldest = std::min(oldest, since);
  }
  return oldest;
}

void Pipeline::FlushAll() {
  std::lock_guard change(changes_);
  FlushOnce();
  for (const Set::Entry& e : set_owner_->entries) {
    e.tracer->SubmitLosses();
    (void)e.tracer->Flush();
  }
}

// Takes the blocks out of every slot and submits them. Called with changes_
// held, so that the set stays.
void Pipeline::FlushOnce() {
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
}

void Pipeline::FlusherLoop() {
  ::pthread_setname_np(::pthread_self(), "tracefs-flush");
  std::unique_lock lock(flusher_mu_);
  while (!stopping_) {
    flusher_wake_.wait_for(lock, options_.flush_interval);
    if (stopping_) return;
    lock.unlock();
    // A change of tracers visits the slots itself; no need to queue behind it.
    if (std::unique_lock change(changes_, std::try_to_lock);
        change.owns_lock()) {
      FlushOnce();
      for (const Set::Entry& e : set_owner_->entries) {
        e.tracer->SubmitLosses();
      }
    }
    lock.lock();
  }
}

}  // namespace tracefs
