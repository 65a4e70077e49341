// TracerSet: the tracers of a mount, as all threads see them: immutable once it
// is published, and replaced as a whole (Pipeline).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "tracefs/pipeline/thread_slots.h"
#include "tracefs/pipeline/tracer.h"

namespace tracefs {

struct TracerSet {
  struct Entry {
    std::shared_ptr<Tracer> tracer;
    std::shared_ptr<const OpPlans> plans;
    // What was counted before it was suspended. Guarded by Pipeline::set_mu_.
    std::shared_ptr<Tally> before;
    // In ThreadSlot::builders and ::tallies; kept while the tracer runs.
    size_t position = 0;
    // Generation of the set in which it first had this position.
    uint32_t since = 0;
  };
  std::vector<Entry> running;
  std::vector<Entry> suspended;  // their positions mean nothing
  uint32_t generation = 0;

  bool Uses(size_t position) const;
  // Bits of EventSink::Interest.
  uint32_t InterestIn(Op op) const;

  // The one with that id, running or suspended; null: there is none.
  Entry* Find(uint32_t id);
  const Entry* Find(uint32_t id) const {
    return const_cast<TracerSet*>(this)->Find(id);
  }

  // While it is made:

  // Takes the one with that id out of `list`, if it is there.
  static std::optional<Entry> Take(uint32_t id, std::vector<Entry>* list);
  // Lets it run, at a position that is also free in `present`: what a tracer
  // left there has yet to be collected. Invalid if there is none.
  Status Join(Entry entry, const TracerSet& present);
};

}  // namespace tracefs
