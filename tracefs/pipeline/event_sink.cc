#include "tracefs/pipeline/event_sink.h"

#include <algorithm>

#include "tracefs/base/clock.h"
#include "tracefs/pipeline/tracer_set.h"
#include "tracefs/survive/area.h"

namespace tracefs {
namespace {

using Entry = TracerSet::Entry;

constexpr uint64_t kSampling = TracerStats::kSampling;
static_assert((kSampling & (kSampling - 1)) == 0, "a mask is made of it");

// Asks a tracer's filter, and counts.
bool Decide(const Entry& e, bool always, Event& event, Tally& tally) {
  const uint64_t seen = tally.seen.Add(1);
  if (always) {
    tally.matched.Add(1);
    return true;
  }
  bool keep;
  if ((seen & (kSampling - 1)) != 0) [[likely]] {
    keep = e.plans->filter().Keep(event);
  } else {
    const uint64_t begin = MonotonicNs();
    keep = e.plans->filter().Keep(event);
    tally.filter_ns.Add(MonotonicNs() - begin);
    tally.filter_samples.Add(1);
  }
  if (keep) tally.matched.Add(1);
  return keep;
}

// Has the tracer's counters and assembly drivers take an event.
inline void Assemble(Tracer& tracer, Event& event, BlockBuilder& builder,
                     Tally& tally) {
  if (tracer.counts() && !event.before) {
    tracer.Count(event, builder);
    tally.counted.Add(1);
  }
  if (tracer.makes_messages() && tracer.Record(event, builder)) {
    tally.encoded.Add(1);
  }
}

// The same, and some of them are timed. Returns where it was put.
BlockBuilder& Encode(const Entry& e, Event& event, ThreadSlot& slot) {
  std::unique_ptr<BlockBuilder>& own = slot.builders[e.position];
  if (!own) own = e.tracer->MakeBuilder(slot.number);
  BlockBuilder& builder = *own;
  Tally& tally = slot.tallies[e.position];
  const uint64_t number = tally.encoded.Get() + tally.counted.Get() + 1;
  if ((number & (kSampling - 1)) != 0) [[likely]] {
    Assemble(*e.tracer, event, builder, tally);
    return builder;
  }
  const Block* const block = &builder.block();
  const uint64_t begin = MonotonicNs();
  Assemble(*e.tracer, event, builder, tally);
  const uint64_t ns = MonotonicNs() - begin;
  // Where a block was handed on, the time is that of the output.
  if (block == &builder.block()) {
    tally.encode_ns.Add(ns);
    tally.encode_samples.Add(1);
  }
  return builder;
}

// A message about the event is about to be put into the slot.
void NoteOpen(ThreadSlot& slot, const Event& event) {
  const uint64_t begin = event.Get(Field::kTime);
  const uint64_t since = slot.open_since.load(std::memory_order_relaxed);
  if (since == 0 || begin < since) {
    slot.open_since.store(begin, std::memory_order_relaxed);
  }
}

constexpr uint64_t BitOf(const Entry& e) { return uint64_t{1} << e.position; }

// While the caller still waits.
void DecideEarly(Event& event, const TracerSet& tracers, ThreadSlot& slot) {
  event.sink_generation = tracers.generation;
  for (const Entry& e : tracers.running) {
    const OpPlans::OpPlan& plan = e.plans->plan(event.op);
    if (!plan.record) continue;
    const bool keep = Decide(e, plan.always, event, slot.tallies[e.position]);
    event.sink_decided |= BitOf(e);
    if (!keep) continue;
    if (plan.caller) event.NeedCaller();
    if (plan.syscall) event.NeedSyscall();
    if (plan.details) event.NeedDetails();
    if (e.tracer->unbuffered()) {
      // A snapshot that this operation triggers waits for this thread.
      if (e.tracer->makes_messages()) NoteOpen(slot, event);
      e.tracer->SubmitFrom(Encode(e, event, slot));
    } else {
      event.sink_keep |= BitOf(e);
    }
  }
}

void Record(Event& event, const TracerSet& tracers, ThreadSlot& slot) {
  for (const Entry& e : tracers.running) {
    const OpPlans::OpPlan& plan = e.plans->plan(event.op);
    if (!plan.record) continue;
    const uint64_t bit = BitOf(e);
    // An early decision stands, unless it was made by a tracer that had this
    // position before.
    const bool decided =
        (event.sink_decided & bit) != 0 && event.sink_generation >= e.since;
    const bool keep =
        decided ? (event.sink_keep & bit) != 0
                : Decide(e, plan.always, event, slot.tallies[e.position]);
    if (!keep) continue;
    if (e.tracer->makes_messages()) NoteOpen(slot, event);
    Encode(e, event, slot);
  }
}

// Whether the record would name only things this thread has already named.
// Otherwise, once the reply is out, the file may be renamed or gone.
bool HasAllNames(const Event& event, const TracerSet& tracers,
                 const ThreadSlot& slot) {
  for (const Entry& e : tracers.running) {
    if (!e.plans->plan(event.op).record) continue;
    const uint64_t bit = BitOf(e);
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

}  // namespace

EventSink::EventSink() : slots_(std::make_unique<ThreadSlots>()) {}
EventSink::~EventSink() = default;

void EventSink::Show(const TracerSet& tracers) {
  tracers_.store(&tracers, std::memory_order_seq_cst);
  for (size_t i = 0; i < kOpCount; ++i) {
    interest_[i].store(tracers.InterestIn(static_cast<Op>(i)),
                       std::memory_order_relaxed);
  }
}

bool EventSink::Refuses(Op op) {
  OwnerSection section(slots_->OfThread().lock);
  for (const Entry& e : tracers_.load(std::memory_order_acquire)->running) {
    const OpPlans::OpPlan& plan = e.plans->plan(op);
    if ((!plan.record && !plan.before) || !e.tracer->refusing()) continue;
    e.tracer->NoteRefusal();
    return true;
  }
  return false;
}

bool EventSink::MayRecord(Event& event) const {
  if ((InterestIn(event.op) & kRecord) == 0) return false;
  OwnerSection section(slots_->OfThread().lock);
  const TracerSet& set = *tracers_.load(std::memory_order_acquire);
  return std::any_of(
      set.running.begin(), set.running.end(), [&](const Entry& e) {
        const OpPlans::OpPlan& plan = e.plans->plan(event.op);
        return (plan.record || plan.before) &&
               (plan.always ||
                e.plans->filter().DecideForFile(event) != Verdict::kDrop);
      });
}

Parked::Parked(EventSink& sink, uint64_t begin_ns)
    : sink_(sink), begin_ns_(begin_ns) {
  sink_.slots_->Park(begin_ns_);
}

Parked::~Parked() { sink_.slots_->Unpark(begin_ns_); }

Recording::Recording(EventSink& sink, Op op, uint32_t interest)
    : sink_(sink), interest_(interest), slot_(&sink.slots_->OfThread()) {
  event.op = op;
  event.Set(Field::kTime, slot_->Enter());
}

Recording::~Recording() {
  if (!parked_) slot_->Leave();
}

void Recording::Park() {
  parked_.emplace(sink_, event.Get(Field::kTime));
  slot_->Leave();
}

inline ThreadSlot& Recording::Slot() const {
  return parked_ ? sink_.slots_->OfThread() : *slot_;
}

void Recording::Before() {
  if (survive::HasRecorded(survive::Outcome::kForetold)) return;
  ThreadSlot& slot = Slot();
  OwnerSection section(slot.lock);
  event.before = true;
  for (const Entry& e :
       sink_.tracers_.load(std::memory_order_acquire)->running) {
    const OpPlans::OpPlan& plan = e.plans->plan(event.op);
    if (!plan.before) continue;
    if (!plan.always &&
        e.plans->filter().DecideEarly(event) == Verdict::kDrop) {
      continue;
    }
    if (plan.caller) event.NeedCaller();
    if (plan.syscall) event.NeedSyscall();
    if (plan.details) event.NeedDetails();
    if (e.tracer->makes_messages()) NoteOpen(slot, event);
    BlockBuilder& builder = Encode(e, event, slot);
    if (e.tracer->unbuffered()) e.tracer->SubmitFrom(builder);
  }
  event.before = false;
  survive::NoteRecorded(survive::Outcome::kForetold);
}

bool Recording::BeforeReply() {
  if (Wants(EventSink::kCaller)) event.NeedCaller();
  if (Wants(EventSink::kSyscall)) event.NeedSyscall();
  if (Wants(EventSink::kDetails)) event.NeedDetails();
  ThreadSlot& slot = Slot();
  OwnerSection section(slot.lock);
  const TracerSet& tracers = *sink_.tracers_.load(std::memory_order_acquire);
  if (survive::HasRecorded(survive::Outcome::kRecorded)) return true;
  if (Wants(EventSink::kBeforeReply)) DecideEarly(event, tracers, slot);
  // The data is in the memory of the reply, or in a buffer that is reused.
  if (sink_.records_first_ || Wants(EventSink::kData) ||
      !HasAllNames(event, tracers, slot)) {
    Record(event, tracers, slot);
    survive::NoteRecorded(survive::Outcome::kRecorded);
    return true;
  }
  slot.names_promised = true;
  return false;
}

void Recording::AfterReply() {
  ThreadSlot& slot = Slot();
  OwnerSection section(slot.lock);
  slot.names_promised = false;
  Record(event, *sink_.tracers_.load(std::memory_order_acquire), slot);
}

}  // namespace tracefs
