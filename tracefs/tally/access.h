// How files are gone through: each read and write against the one of its kind
// before it in the same open file, and what each open file amounts to. This is
// the only definition of "consecutive", "sequential" and the like.
//
// An open file is known by the handle and the inode of it, in its trace. It
// ends with its release.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tracefs/event/event.h"
#include "tracefs/tally/histogram.h"
#include "tracefs/tally/transfer.h"

namespace tracefs::tally {

// Where a transfer begins, seen from the end of the one before.
enum class AccessStep : uint8_t { kFirst, kConsecutive, kForward, kBackward };
inline constexpr size_t kAccessSteps = 4;
inline constexpr std::array<std::string_view, kAccessSteps> kAccessStepNames = {
    "first", "consecutive", "forward", "backward"};

// Of all transfers of one kind through an open file. Nine in ten make it so.
enum class AccessPattern : uint8_t { kSingle, kSequential, kStrided, kRandom };
inline constexpr size_t kAccessPatterns = 4;
inline constexpr std::array<std::string_view, kAccessPatterns>
    kAccessPatternNames = {"single", "sequential", "strided", "random"};

// Of the reads, or the writes, of one open file what it takes to tell steps.
class AccessEnd {
 public:
  AccessStep Take(uint64_t offset, uint64_t size) {
    const AccessStep step = end_ == kNowhere ? AccessStep::kFirst
                            : offset == end_ ? AccessStep::kConsecutive
                            : offset > end_  ? AccessStep::kForward
                                             : AccessStep::kBackward;
    end_ = offset + size;
    return step;
  }

 private:
  static constexpr uint64_t kNowhere = UINT64_MAX;
  uint64_t end_ = kNowhere;
};

// The same, and what they amount to.
class AccessRun {
 public:
  AccessStep Take(uint64_t offset, uint64_t size) {
    const AccessStep step = end_.Take(offset, size);
    const auto distance = static_cast<int64_t>(offset - begin_);
    if (count_ > 1 && distance == distance_) ++repeated_;
    if (count_ > 0) distance_ = distance;
    const bool consecutive = step == AccessStep::kConsecutive;
    if (consecutive) ++consecutive_;
    run_bytes_ = consecutive ? AddTo(run_bytes_, size) : size;
    longest_run_ = std::max(longest_run_, run_bytes_);
    begin_ = offset;
    ++count_;
    bytes_ = AddTo(bytes_, size);
    return step;
  }

  AccessPattern pattern() const {
    if (count_ < 2) return AccessPattern::kSingle;
    if (10 * consecutive_ >= 9 * (count_ - 1)) {
      return AccessPattern::kSequential;
    }
    if (count_ > 2 && 10 * repeated_ >= 9 * (count_ - 2)) {
      return AccessPattern::kStrided;
    }
    return AccessPattern::kRandom;
  }
  uint64_t count() const { return count_; }
  uint64_t bytes() const { return bytes_; }
  // Bytes of the longest row of transfers of which each was consecutive.
  uint64_t longest_run() const { return longest_run_; }

 private:
  uint64_t count_ = 0;
  uint64_t bytes_ = 0;
  uint64_t consecutive_ = 0;
  uint64_t repeated_ = 0;  // as far from the one before as that from its own
  uint64_t begin_ = 0;     // of the last transfer
  AccessEnd end_;
  int64_t distance_ = 0;
  uint64_t run_bytes_ = 0;
  uint64_t longest_run_ = 0;
};

// `Run`: AccessEnd or AccessRun. Used by one thread.
template <typename Run>
class OpenFiles {
 public:
  // Followed at a time.
  static constexpr size_t kMost = size_t{1} << 18;
  using Ways = std::array<Run, 2>;  // by Way

  // An operation, in order of time. Calls `on_step(transfer, offset, step)` for
  // each transfer whose place is known, and `on_close(ways)` for an open file
  // that ends.
  template <typename OnStep, typename OnClose>
  void Take(const Event& event, size_t trace, OnStep on_step,
            OnClose on_close) {
    for (const Transfer& transfer : TransfersOf(event)) {
      const Field position = OffsetField(transfer.end);
      if (!event.Has(position)) continue;
      Ways* const ways = FindOrAdd(KeyOf(event, transfer.end, trace));
      if (ways == nullptr) {
        ++not_followed_;
        continue;
      }
      const uint64_t offset = event.Get(position);
      Run& run = (*ways)[static_cast<size_t>(transfer.way)];
      on_step(transfer, offset, run.Take(offset, transfer.bytes));
    }
    if (event.op != Op::release_ || event.before) return;
    const size_t at = SlotOf(KeyOf(event, End::kFile, trace));
    if (slots_[at].number == 0) return;
    on_close(open_[slots_[at].number - 1].ways);
    Remove(at);
  }
  // The operation is taken soon: told some time before, and again a little
  // later (`soon`), what is known of its file comes meanwhile.
  void Fetch(const Event& event, size_t trace, bool soon) const {
    if (!Transfers(event.op)) return;
    const uint32_t hash = HashOf(KeyOf(event, End::kFile, trace));
    const Slot& slot = slots_[hash & (slots_.size() - 1)];
    if (!soon) {
      __builtin_prefetch(&slot);
    } else if (slot.number != 0) {
      __builtin_prefetch(&open_[slot.number - 1], 1);
    }
  }
  // Ends all.
  template <typename OnClose>
  void Finish(OnClose on_close) {
    for (const Open& open : open_) on_close(open.ways);
    open_.clear();
    slots_.assign(slots_.size(), {});
  }
  // Transfers through open files for which there was no room.
  uint64_t not_followed() const { return not_followed_; }

 private:
  struct Key {
    uint64_t handle = 0;  // with the number of the trace on top
    uint64_t inode = 0;
    bool operator==(const Key&) const = default;
  };
  struct Open {
    Key key;
    Ways ways;
  };
  struct Slot {
    uint32_t hash = 0;
    uint32_t number = 0;  // in open_, plus 1; 0: free
  };
  static uint32_t HashOf(const Key& key) {
    const uint64_t hash =
        (key.inode ^ key.handle * 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    return static_cast<uint32_t>(hash >> 32);
  }
  static Key KeyOf(const Event& event, End end, size_t trace) {
    const auto number = [&event](Field field) {
      return event.Has(field) ? event.Get(field) : 0;
    };
    return {number(HandleField(end)) ^ uint64_t{trace} << 48,
            number(InodeField(end))};
  }

  // The slot that has it, or a free one.
  size_t SlotOf(const Key& key) const {
    const size_t mask = slots_.size() - 1;
    const uint32_t hash = HashOf(key);
    size_t at = hash & mask;
    while (
        slots_[at].number != 0 &&
        (slots_[at].hash != hash || open_[slots_[at].number - 1].key != key)) {
      at = (at + 1) & mask;
    }
    return at;
  }
  // Null: there is no room.
  Ways* FindOrAdd(const Key& key) {
    size_t at = SlotOf(key);
    if (slots_[at].number != 0) return &open_[slots_[at].number - 1].ways;
    if (open_.size() >= kMost) return nullptr;
    if (2 * open_.size() >= slots_.size()) {
      Grow();
      at = SlotOf(key);
    }
    open_.push_back({key, {}});
    slots_[at] = {HashOf(key), static_cast<uint32_t>(open_.size())};
    return &open_.back().ways;
  }
  void Grow() {
    slots_.assign(2 * slots_.size(), {});
    for (size_t i = 0; i < open_.size(); ++i) {
      slots_[SlotOf(open_[i].key)] = {HashOf(open_[i].key),
                                      static_cast<uint32_t>(i + 1)};
    }
  }
  void Remove(size_t at) {
    // The last one takes its place.
    const uint32_t number = slots_[at].number;
    if (number != open_.size()) {
      slots_[SlotOf(open_.back().key)].number = number;
      open_[number - 1] = open_.back();
    }
    open_.pop_back();
    // What stands after a free slot is not found: those that would, move up.
    const size_t mask = slots_.size() - 1;
    size_t free = at;
    for (size_t next = (at + 1) & mask; slots_[next].number != 0;
         next = (next + 1) & mask) {
      const size_t home = slots_[next].hash & mask;
      if (((next - home) & mask) < ((next - free) & mask)) continue;
      slots_[free] = slots_[next];
      free = next;
    }
    slots_[free] = {};
  }

  std::vector<Open> open_;
  std::vector<Slot> slots_ = std::vector<Slot>(64);  // a power of two
  uint64_t not_followed_ = 0;
};

}  // namespace tracefs::tally
