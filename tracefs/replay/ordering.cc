#include "tracefs/replay/ordering.h"

namespace tracefs::replay {
namespace {

uint32_t CounterOf(Resource resource, uint64_t key) {
  uint64_t x = key * 8 + static_cast<uint64_t>(resource);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return static_cast<uint32_t>((x ^ (x >> 31)) & (kOrderCounters - 1));
}

}  // namespace

void OrderTracker::Use(Resource resource, uint64_t key, UseKind kind) {
  const uint32_t counter = CounterOf(resource, key);
  // An action that used a counter twice would wait for itself.
  for (uint32_t i = 0; i < count_; ++i) {
    if (wanted_[i].counter != counter) continue;
    if (wanted_[i].kind != kind) wanted_[i].kind = UseKind::kAlone;
    return;
  }
  if (count_ < Action::kMaxOrders) wanted_[count_++] = {counter, kind};
}

void OrderTracker::End(Action* action) {
  action->order_count = count_;
  for (uint32_t i = 0; i < count_; ++i) {
    Run& run = runs_[wanted_[i].counter];
    if (wanted_[i].kind == UseKind::kAlone || wanted_[i].kind != run.kind ||
        run.uses == run.begin) {
      // Who made all uses so far?
      if (run.before_lane == kNobody) {
        run.before_lane = run.lane;
      } else if (run.lane != kNobody && run.lane != run.before_lane) {
        run.before_lane = kSeveral;
      }
      run.begin = run.uses;
      run.kind = wanted_[i].kind;
      run.lane = kNobody;
    }
    run.lane = run.lane == kNobody || run.lane == lane_ ? lane_ : kSeveral;
    ++run.uses;
    // A lane is in order by itself.
    const bool waits = run.before_lane != kNobody && run.before_lane != lane_;
    action->orders[i] = {wanted_[i].counter, run.begin, waits};
  }
}

}  // namespace tracefs::replay
