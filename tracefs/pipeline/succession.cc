// What a later daemon goes on with where this one is killed: the blocks that
// were being filled, and where each trace stands (tracefs/survive/area.h).
#include <algorithm>
#include <atomic>
#include <cstring>

#include "tracefs/base/clock.h"
#include "tracefs/base/common_clock.h"
#include "tracefs/pipeline/block_builder.h"
#include "tracefs/pipeline/tracer.h"
#include "tracefs/survive/area.h"

namespace tracefs {

using survive::Area;

namespace {

// What is behind a block in its place.
constexpr size_t kBehind = (sizeof(Block) + 63) / 64 * 64;

}  // namespace

// --- Blocks.

void* Block::TakePlace(size_t bytes) {
  Area* const area = Area::OfProcess();
  void* const place = area == nullptr ? nullptr : area->TakeBlock();
  return place != nullptr ? place : ::operator new(bytes);
}

void Block::GivePlace(void* block) {
  Area* const area = Area::OfProcess();
  if (area != nullptr && area->IsBlock(block)) {
    area->GiveBlock(block);
  } else {
    ::operator delete(block);
  }
}

Block::Memory Block::MemoryFor(size_t bytes) {
  const Area* const area = Area::OfProcess();
  if (area != nullptr && area->IsBlock(this) &&
      kBehind + bytes <= Area::kBlockBytes) {
    return {reinterpret_cast<std::byte*>(this) + kBehind, Delete{false}};
  }
  return {new std::byte[bytes], Delete{}};
}

void BlockBuilder::Keep(const Event& event) {
  const Block& b = *block_;
  const uint64_t begin = event.Get(Field::kTime);
  Block::Kept& kept = block_->kept;
  kept.events = b.events + 1;
  kept.first_ns = b.events == 0 ? begin : std::min(begin, b.first_ns);
  kept.last_ns = std::max(b.last_ns, begin);
  kept.phase = event.before ? 1 : 0;
  kept.op = static_cast<uint32_t>(Index(event.op));
  kept.count = b.by_op[kept.phase][kept.op] + 1;
  kept.written_as.store(0, std::memory_order_relaxed);
  kept.bytes.store(b.writer.size(), std::memory_order_release);
}

std::unique_ptr<Block> Block::Left(void* place, uint32_t owner,
                                   uint64_t sequence) {
  const auto& left = *static_cast<const Block*>(place);
  const Kept& kept = left.kept;
  const uint64_t bytes = kept.bytes.load();
  const uint64_t written_as = kept.written_as.load();
  if (kept.owner != owner || bytes <= format::kBlockInfoBytes ||
      kBehind + bytes > Area::kBlockBytes || kept.phase > 1 ||
      kept.op >= kOpCount || (written_as != 0 && written_as - 1 < sequence)) {
    return nullptr;
  }
  // Room for what a tracer adds when it writes it.
  constexpr size_t kMore = 4096;
  auto block = std::make_unique<Block>(bytes + kMore);
  std::memcpy(block->memory.get(),
              static_cast<const std::byte*>(place) + kBehind, bytes);
  block->writer.Truncate(bytes);
  block->source = left.source;
  block->events = kept.events;
  block->first_ns = kept.first_ns;
  block->last_ns = kept.last_ns;
  block->by_op = left.by_op;
  block->by_op[kept.phase][kept.op] = kept.count;
  return block;
}

// --- Traces.

void Tracer::NoteState() {
  if (parts_.survives == nullptr) return;
  survive::TraceRecord& record = *parts_.survives;
  const uint32_t turn = record.turns.load(std::memory_order_relaxed) + 1;
  survive::TraceState& state = record.states[turn % 2];
  state.sequence = next_sequence_;
  state.bytes = record.output_bytes.load(std::memory_order_relaxed);
  state.recorded = recorded_.Get();
  static_assert(kLossReasonCount <= std::tuple_size_v<decltype(state.lost)>);
  static_assert(kOpCount <=
                std::tuple_size_v<decltype(state.by_op)::value_type>);
  for (size_t r = 0; r < kLossReasonCount; ++r) {
    state.lost[r] = losses_.Reported(static_cast<LossReason>(r));
  }
  for (size_t phase = 0; phase < totals_.size(); ++phase) {
    for (size_t op = 0; op < kOpCount; ++op) {
      state.by_op[phase][op] = totals_[phase][op].Get();
    }
  }
  record.turns.store(turn, std::memory_order_release);
}

Status Tracer::Continue(TraceIdentity identity) {
  const survive::TraceRecord& record = *parts_.survives;
  const survive::TraceState state = record.states[record.turns.load() % 2];
  identity.resume_at = state.bytes;
  if (Status s = parts_.output->Initialize(identity); !s.ok()) return s;
  clock_ = CommonClockPair();
  next_sequence_ = state.sequence;
  blocks_.Add(state.sequence);
  recorded_.Add(state.recorded);
  for (size_t r = 0; r < kLossReasonCount; ++r) {
    losses_.Restore(static_cast<LossReason>(r), state.lost[r]);
  }
  for (size_t phase = 0; phase < totals_.size(); ++phase) {
    for (size_t op = 0; op < kOpCount; ++op) {
      totals_[phase][op].Add(state.by_op[phase][op]);
    }
  }
  last_block_ns_ = MonotonicNs();
  Area& area = *Area::OfProcess();
  std::vector<std::pair<Block*, std::unique_ptr<Block>>> left;
  for (void* const place : area.left_blocks()) {
    if (auto block = Block::Left(place, parts_.id, next_sequence_)) {
      left.emplace_back(static_cast<Block*>(place), std::move(block));
    }
  }
  std::ranges::sort(left, {},
                    [](const auto& one) { return one.second->first_ns; });
  for (size_t i = 0; i < left.size(); ++i) {
    auto& [place, block] = left[i];
    left_since_ns_ =
        i + 1 < left.size() ? left[i + 1].second->first_ns : UINT64_MAX;
    place->kept.written_as.store(next_sequence_ + 1);
    NoteError(WriteLocked(*block, /*last=*/false));
    place->kept.bytes.store(0);
  }
  left_since_ns_ = UINT64_MAX;
  return Status::Ok();
}

}  // namespace tracefs
