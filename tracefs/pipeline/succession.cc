// What a later daemon goes on with where this one is killed: where each trace
// stands (tracefs/survive/area.h), and the blocks that are left
// (left_blocks.cc).
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>

#include "tracefs/base/clock.h"
#include "tracefs/base/common_clock.h"
#include "tracefs/pipeline/block_builder.h"
#include "tracefs/pipeline/tracer.h"
#include "tracefs/survive/area.h"

namespace tracefs {

using survive::Area;
using survive::OutputState;

namespace {

void Copy(const OutputState& from, OutputState* to) {
  const size_t bytes = std::min<size_t>(from.key_bytes, from.keys.size());
  std::memcpy(to, &from, offsetof(OutputState, keys) + bytes);
}

}  // namespace

void Tracer::NoteState(bool ended) {
  if (parts_.survives == nullptr) return;
  survive::TraceRecord& record = *parts_.survives;
  const uint32_t turn = record.turns.load(std::memory_order_relaxed) + 1;
  survive::TraceState& state = record.states[turn % 2];
  state.sequence = next_sequence_;
  state.ended = ended ? 1 : 0;
  Copy(record.output, &state.output);
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
  // They lead to the keys of blocks that are written.
  survive::TraceState& before = record.states[(turn + 1) % 2];
  if (before.output.key_bytes != 0) {
    ::explicit_bzero(before.output.keys.data(), before.output.keys.size());
  }
  parts_.output->Noted();
}

void Tracer::NoteLosses() {
  if (parts_.survives == nullptr) return;
  survive::TraceRecord& record = *parts_.survives;
  for (size_t r = 0; r < kLossReasonCount; ++r) {
    record.lost[r].store(losses_.Total(static_cast<LossReason>(r)));
  }
  record.late_events.store(late_events_.load(std::memory_order_relaxed));
  record.late_blocks.store(late_blocks_.load(std::memory_order_relaxed));
}

Status Tracer::Continue(TraceIdentity identity) {
  survive::TraceRecord& record = *parts_.survives;
  const survive::TraceState& state = record.states[record.turns.load() % 2];
  Copy(state.output, &record.output);
  identity.resumes = true;
  identity.next_block = state.sequence;
  if (Status s = parts_.output->Initialize(identity); !s.ok()) return s;
  clock_ = CommonClockPair();
  next_sequence_ = state.sequence;
  blocks_.Add(state.sequence);
  recorded_.Add(state.recorded);
  for (size_t r = 0; r < kLossReasonCount; ++r) {
    const auto reason = static_cast<LossReason>(r);
    losses_.Restore(reason, state.lost[r]);
    // What the dead one could not tell any more; when it was is not known.
    const uint64_t lost = record.lost[r].load();
    const uint64_t now = MonotonicNs();
    if (lost > state.lost[r])
      losses_.Add(reason, lost - state.lost[r], now, now);
  }
  for (size_t phase = 0; phase < totals_.size(); ++phase) {
    for (size_t op = 0; op < kOpCount; ++op) {
      totals_[phase][op].Add(state.by_op[phase][op]);
    }
  }
  late_events_.store(record.late_events.load());
  late_blocks_.store(record.late_blocks.load());
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
