#include "tracefs/tools/dump/aggregate_queue.h"

#include <algorithm>

namespace tracefs {

void AggregateQueue::Add(const format::AggregateRecord& record) {
  // Nearly always the last place; those of one period stay in their order.
  const auto place = std::upper_bound(
      kept_.begin(), kept_.end(), record.real_to_ns,
      [](uint64_t end, const Kept& k) { return end < k.record.real_to_ns; });
  Kept& kept = *kept_.insert(place, Kept{.record = record, .texts = {}});
  for (format::AggregateKeyPart& part : kept.record.key) {
    part.text = kept.texts.emplace_back(part.text);
  }
}

void AggregateQueue::TakeUntil(uint64_t until_ns, const Use& use) {
  while (!kept_.empty() && (kept_.front().record.real_to_ns <= until_ns ||
                            kept_.size() > kMaxKept)) {
    use(kept_.front().record);
    kept_.pop_front();
  }
}

}  // namespace tracefs
