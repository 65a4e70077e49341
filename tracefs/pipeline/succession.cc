// What a later daemon goes on with where this one is killed: where each trace
// stands (tracefs/survive/area.h), and the blocks that are left
// (left_blocks.cc).
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "tracefs/base/append_le.h"
#include "tracefs/base/bytes.h"
#include "tracefs/base/clock.h"
#include "tracefs/base/common_clock.h"
#include "tracefs/base/notice.h"
#include "tracefs/pipeline/block_builder.h"
#include "tracefs/pipeline/tracer.h"
#include "tracefs/survive/area.h"
#include "tracefs/survive/kept_text.h"

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
  state.told = told_;
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

bool Tracer::CountsToKeep(uint64_t now_ns) const {
  return parts_.survives != nullptr && !counters_.empty() &&
         now_ns >= save_ns_.load(std::memory_order_relaxed);
}

void Tracer::KeepCounts() {
  const std::lock_guard lock(mu_);
  SaveCounts({}, /*end=*/false);
}

// With mu_, and no counter is changing.
void Tracer::SaveCounts(const std::vector<bool>& telling, bool end) {
  if (parts_.survives == nullptr || counters_.empty()) return;
  const uint64_t begin = MonotonicNs();
  std::string text;
  AppendLe(told_, &text);
  AppendLe(begin, &text);
  AppendLe<uint8_t>(end ? 1 : 0, &text);
  AppendLe(static_cast<uint32_t>(counters_.size()), &text);
  std::string saved;
  for (size_t i = 0; i < counters_.size(); ++i) {
    saved.clear();
    counters_[i]->Save(&saved);
    AppendLe<uint8_t>(!telling.empty() && telling[i] ? 1 : 0, &text);
    AppendLe<uint64_t>(saved.size(), &text);
    text += saved;
  }
  const Status kept =
      survive::KeepText(*Area::OfProcess(), parts_.survives->counts, text);
  if (!kept.ok() && std::exchange(tells_unsaved_, false)) {
    Notify(NoticeId::kOutputFailed,
           "what tracer " + std::to_string(parts_.id) +
               " counts is lost if its daemon is killed: " + kept.message());
  }
  saved_ns_ = begin;
  // Large ones take time: at most a fiftieth of it.
  constexpr uint64_t kEvery = 200 * kNsPerMs;  // each turn of the flusher
  const uint64_t now = MonotonicNs();
  save_ns_.store(now + std::max(kEvery, 50 * (now - begin)),
                 std::memory_order_relaxed);
}

TracerStats StatsOfEnded(const TracerParts& parts) {
  const survive::TraceRecord& record = *parts.survives;
  const survive::TraceState& state = record.states[record.turns.load() % 2];
  TracerStats stats;
  stats.id = parts.id;
  stats.kind = parts.kind;
  stats.name = parts.name;
  stats.written = state.recorded;
  std::copy_n(state.lost.begin(), kLossReasonCount, stats.lost.begin());
  return stats;
}

uint64_t Tracer::LoadCounts(const survive::TraceState& state) {
  if (counters_.empty()) return 0;
  survive::TraceRecord& record = *parts_.survives;
  Area& area = *Area::OfProcess();
  told_ = state.told;
  const std::optional<std::string> text =
      survive::KeptText(area, record.counts.load());
  ByteCursor saved(AsBytes(text ? std::string_view(*text) : ""));
  const auto told_then = saved.TakeLe<uint64_t>();
  const auto at_ns = saved.TakeLe<uint64_t>();
  const auto end = saved.TakeLe<uint8_t>();
  const auto count = saved.TakeLe<uint32_t>();
  uint64_t were_told = 0;
  uint64_t told = 0;
  if (told_then && at_ns && end && count && *count == counters_.size()) {
    saved_ns_ = *at_ns;
    told = state.told - std::min(*told_then, state.told);
    for (const std::shared_ptr<EventCounter>& counter : counters_) {
      const auto telling = saved.TakeLe<uint8_t>();
      const auto size = saved.TakeLe<uint64_t>();
      const auto bytes = size ? saved.Take(*size) : std::nullopt;
      if (!telling || !bytes) break;
      const bool again = told != 0 && *telling != 0;
      were_told +=
          counter->Load(AsText(*bytes), {.period = again, .end = again && *end})
              .value_or(0);
    }
  }
  // Each event is counted by each of them.
  const uint64_t known = counters_.front()->counted();
  std::atomic<uint64_t>& lost =
      record.lost[static_cast<size_t>(LossReason::kDied)];
  const uint64_t all = area.CountedEvents(record);
  if (all > known + lost.load()) lost.store(all - known);
  return were_told - std::min(told, were_told);
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
  const uint64_t untold = LoadCounts(state);
  for (size_t r = 0; r < kLossReasonCount; ++r) {
    const auto reason = static_cast<LossReason>(r);
    losses_.Restore(reason, state.lost[r]);
    // What the dead one could not tell any more; when it was is not known.
    const uint64_t lost = record.lost[r].load();
    const uint64_t now = MonotonicNs();
    const uint64_t since =
        reason == LossReason::kDied && saved_ns_ != 0 ? saved_ns_ : now;
    if (lost > state.lost[r]) {
      losses_.Add(reason, lost - state.lost[r], since, now);
    }
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
  SaveCounts({}, /*end=*/false);
  if (untold == 0) return Status::Ok();
  const std::string events = std::to_string(untold);
  spare_->Reset();
  static_cast<void>(format::WriteChange(
      spare_->writer,
      {.from_ns = MonotonicNs(), .properties = {{"daemon.untold", events}}}));
  NoteError(WriteLocked(*spare_, /*last=*/false));
  return Status::Ok();
}

}  // namespace tracefs
