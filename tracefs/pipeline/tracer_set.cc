#include "tracefs/pipeline/tracer_set.h"

#include <algorithm>

#include "tracefs/pipeline/event_sink.h"

namespace tracefs {

bool TracerSet::Uses(size_t position) const {
  return std::any_of(running.begin(), running.end(),
                     [&](const Entry& e) { return e.position == position; });
}

uint32_t TracerSet::InterestIn(Op op) const {
  uint32_t bits = 0;
  for (const Entry& e : running) {
    const OpPlans::OpPlan& plan = e.plans->plan(op);
    if (WritesContents(op) && (e.plans->plan(Op::fsync_).extents ||
                               e.plans->plan(Op::release_).extents)) {
      bits |= EventSink::kNotesWrites;
    }
    if (!plan.record && !plan.before) continue;
    bits |= EventSink::kRecord;
    if (plan.before) bits |= EventSink::kBefore;
    if (plan.caller) bits |= EventSink::kCaller;
    if (plan.syscall) bits |= EventSink::kSyscall;
    if (plan.details) bits |= EventSink::kDetails;
    if (e.tracer->when_full() == LossPolicy::kFail) bits |= EventSink::kGate;
    if (plan.data) bits |= EventSink::kData;
    if (plan.order) bits |= EventSink::kOrder;
    if (plan.keep) bits |= EventSink::kKeep;
    if (plan.extents) bits |= EventSink::kExtents;
    if (plan.names) bits |= EventSink::kNames;
    // The caller matters only for events that the filter keeps: the filter
    // decides first, and the caller of a dropped event is never looked up.
    if (plan.decide_early || (plan.record && e.tracer->unbuffered()) ||
        ((plan.caller || plan.syscall) && !plan.always)) {
      bits |= EventSink::kBeforeReply;
    }
  }
  // Where the filter runs before the reply, it resolves these if need be.
  if ((bits & EventSink::kBeforeReply) != 0) {
    bits &= ~uint32_t{EventSink::kCaller | EventSink::kSyscall |
                      EventSink::kDetails};
  }
  return bits;
}

TracerSet::Entry* TracerSet::Find(uint32_t id) {
  for (auto* list : {&running, &suspended}) {
    for (Entry& e : *list) {
      if (e.tracer->id() == id) return &e;
    }
  }
  return nullptr;
}

std::optional<TracerSet::Entry> TracerSet::Take(uint32_t id,
                                                std::vector<Entry>* list) {
  const auto found =
      std::find_if(list->begin(), list->end(),
                   [&](const Entry& e) { return e.tracer->id() == id; });
  if (found == list->end()) return std::nullopt;
  Entry taken = std::move(*found);
  list->erase(found);
  return taken;
}

Status TracerSet::Join(Entry entry, const TracerSet& present) {
  entry.position = 0;
  while (Uses(entry.position) || present.Uses(entry.position)) {
    ++entry.position;
  }
  if (entry.position >= ThreadSlot::kPositions) {
    return Status::Invalid(std::to_string(ThreadSlot::kPositions) +
                           " tracers run already, those of rules, tail and top "
                           "included, and no more can; stop one first");
  }
  entry.since = generation;
  running.push_back(std::move(entry));
  return Status::Ok();
}

}  // namespace tracefs
