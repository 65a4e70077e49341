#include "tracefs/format/trace_merger.h"

#include <algorithm>
#include <utility>

namespace tracefs::format {
namespace {

using Block = std::unique_ptr<BlockDecoder>;

// Equal times keep the order of blocks.
bool Later(const Block& a, const Block& b) {
  return a->next_time() != b->next_time() ? a->next_time() > b->next_time()
                                          : a->sequence() > b->sequence();
}

uint64_t RealTime(const BlockDecoder& block) {
  return block.head().clock.ToReal(block.next_time());
}

}  // namespace

void TraceMerger::Add(std::unique_ptr<TraceReader> reader) {
  lanes_.push_back(std::make_unique<Lane>());
  lanes_.back()->reader = std::move(reader);
}

bool TraceMerger::ReadBlock(Lane& lane) {
  Block block;
  const Result<ReadStep> step = lane.reader->NextBlock(&block);
  if (!step.ok()) lane.status = step.status();
  if (!step.ok() || *step == ReadStep::kEnd) {
    lane.ended = true;
    return false;
  }
  if (*step == ReadStep::kWait) return false;
  TakeBlock(lane, std::move(block));
  return true;
}

void TraceMerger::TakeBlock(Lane& lane, Block block) {
  lane.watermark = std::max(lane.watermark, block->head().watermark_ns);
  if (block->at_end()) return;
  used_bytes_ += block->footprint();
  lane.open.push_back(std::move(block));
  std::push_heap(lane.open.begin(), lane.open.end(), Later);
}

Status TraceMerger::ReadFirst(size_t i) {
  Lane& lane = *lanes_[i];
  if (!lane.ended && !std::exchange(lane.first_read, true)) ReadBlock(lane);
  return lane.status;
}

std::unique_ptr<BlockDecoder> TraceMerger::TakeFirst(size_t i) {
  Lane& lane = *lanes_[i];
  if (lane.open.size() != 1) return nullptr;
  Block block = std::move(lane.open.front());
  lane.open.clear();
  used_bytes_ -= block->footprint();
  return block;
}

bool TraceMerger::Prepare(Lane& lane) {
  for (;;) {
    if (!lane.open.empty() &&
        (lane.ended || lane.open.front()->next_time() <= lane.watermark)) {
      return true;
    }
    if (lane.ended) return true;
    if (!lane.open.empty() && used_bytes_ >= memory_bytes_) {
      if (!std::exchange(lane.unordered_reported, true)) {
        lane.reader->context().Tell({.kind = ReportKind::kUnordered});
      }
      return true;
    }
    if (!ReadBlock(lane) && !lane.ended) return false;
  }
}

// The front has moved on to a later time: restores the heap. Most often the
// front is still the oldest, which costs two comparisons.
void TraceMerger::SiftFront(Lane& lane) {
  auto& heap = lane.open;
  size_t at = 0;
  for (;;) {
    const size_t left = 2 * at + 1;
    if (left >= heap.size()) return;
    const size_t right = left + 1;
    const size_t child =
        right < heap.size() && Later(heap[left], heap[right]) ? right : left;
    if (!Later(heap[at], heap[child])) return;
    std::swap(heap[at], heap[child]);
    at = child;
  }
}

bool TraceMerger::Take(Lane& lane, Record* record) {
  const uint64_t time = lane.open.front()->next_time();
  if (time < lane.last_time) {
    ++lane.reader->mutable_stats().unordered_events;
  } else {
    lane.last_time = time;
  }
  const bool is_operation = lane.open.front()->Next(record);
  if (!lane.open.front()->at_end()) {
    SiftFront(lane);
    return is_operation;
  }
  std::pop_heap(lane.open.begin(), lane.open.end(), Later);
  lane.used_up = std::move(lane.open.back());
  lane.open.pop_back();
  used_bytes_ -= lane.used_up->footprint();
  return is_operation;
}

size_t TraceMerger::memory_bytes() const {
  size_t bytes = used_bytes_;
  for (const auto& lane : lanes_) {
    bytes += lane->reader->memory_bytes();
    if (lane->used_up != nullptr) bytes += lane->used_up->footprint();
  }
  return bytes;
}

void TraceMerger::ReleaseMemory() {
  for (const auto& lane : lanes_) {
    lane->used_up.reset();
    lane->reader->ReleaseMemory();
  }
}

ReadStep TraceMerger::Choose(bool hurry, Lane** oldest) {
  *oldest = nullptr;
  bool certain = true;
  for (const auto& lane : lanes_) {
    certain = Prepare(*lane) && certain;
    if (lane->open.empty()) continue;
    if (*oldest == nullptr ||
        RealTime(*lane->open.front()) < RealTime(*(*oldest)->open.front())) {
      *oldest = lane.get();
    }
  }
  if (!certain && !hurry) return ReadStep::kWait;
  if (*oldest != nullptr) return ReadStep::kItem;
  return certain ? ReadStep::kEnd : ReadStep::kWait;
}

ReadStep TraceMerger::Next(Record* record, bool hurry) {
  for (;;) {
    Lane* oldest;
    const ReadStep step = Choose(hurry, &oldest);
    if (step != ReadStep::kItem) return step;
    // Process records go to their own sink on the way.
    if (Take(*oldest, record)) return ReadStep::kItem;
  }
}

ReadStep TraceMerger::NextProcess() {
  for (;;) {
    Lane* oldest;
    const ReadStep step = Choose(/*hurry=*/false, &oldest);
    if (step != ReadStep::kItem) return step;
    Record passed_over;
    if (!Take(*oldest, &passed_over)) return ReadStep::kItem;
  }
}

}  // namespace tracefs::format
