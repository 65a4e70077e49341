// How files are gone through: each read and write against the one of its kind
// before it in the same open file, and what each open file amounts to. This is
// the only definition of "consecutive", "sequential" and the like.
//
// An open file is known by the handle and the inode of it, on its mount. It
// ends with its release.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tracefs/base/hash_table.h"
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
  void Take(const Event& event, size_t mount, OnStep on_step,
            OnClose on_close) {
    // A handle that is given again, although its release was not told: the
    // trace was cut, and another one goes on.
    if (OpensFile(event.op) && event.Has(Field::kFh) && !event.before) {
      Close(KeyOf(event, End::kFile, mount), on_close);
    }
    for (const Transfer& transfer : TransfersOf(event)) {
      const Field position = OffsetField(transfer.end);
      if (!event.Has(position)) continue;
      Ways* const ways = FindOrAdd(KeyOf(event, transfer.end, mount));
      if (ways == nullptr) {
        ++not_followed_;
        continue;
      }
      const uint64_t offset = event.Get(position);
      Run& run = (*ways)[static_cast<size_t>(transfer.way)];
      on_step(transfer, offset, run.Take(offset, transfer.bytes));
    }
    if (event.op != Op::release_ || event.before) return;
    Close(KeyOf(event, End::kFile, mount), on_close);
  }
  // The operation is taken soon: told some time before, and again a little
  // later (`soon`), what is known of its file comes meanwhile.
  void Fetch(const Event& event, size_t mount, bool soon) const {
    if (!Transfers(event.op)) return;
    const uint64_t hash = HashOf(KeyOf(event, End::kFile, mount));
    if (!soon) return numbers_.Fetch(hash);
    const uint32_t number = numbers_.Guess(hash);
    if (number != HashIndex::kNone) __builtin_prefetch(&open_[number], 1);
  }
  // Ends all.
  template <typename OnClose>
  void Finish(OnClose on_close) {
    for (const Open& open : open_) on_close(open.ways);
    open_.clear();
    numbers_.Clear();
  }
  // Transfers through open files for which there was no room.
  uint64_t not_followed() const { return not_followed_; }

 private:
  struct Key {
    uint64_t handle = 0;  // with the number of the mount on top
    uint64_t inode = 0;
    bool operator==(const Key&) const = default;
  };
  struct Open {
    Key key;
    Ways ways;
  };
  static uint64_t HashOf(const Key& key) {
    return (key.inode ^ key.handle * 0x9e3779b97f4a7c15u) *
               0xbf58476d1ce4e5b9u >>
           32;
  }
  static Key KeyOf(const Event& event, End end, size_t mount) {
    return {event.GetOr0(HandleField(end)) ^ uint64_t{mount} << 48,
            event.GetOr0(InodeField(end))};
  }

  uint32_t Find(const Key& key) const {
    return numbers_.Find(
        HashOf(key), [&](uint32_t number) { return open_[number].key == key; });
  }
  template <typename OnClose>
  void Close(const Key& key, OnClose on_close) {
    const uint32_t number = Find(key);
    if (number == HashIndex::kNone) return;
    on_close(open_[number].ways);
    // The last one takes its place.
    numbers_.Remove(HashOf(key), number);
    if (number + 1 != open_.size()) {
      numbers_.Renumber(HashOf(open_.back().key),
                        static_cast<uint32_t>(open_.size() - 1), number);
      open_[number] = open_.back();
    }
    open_.pop_back();
  }
  // Null: there is no room.
  Ways* FindOrAdd(const Key& key) {
    const uint32_t number = Find(key);
    if (number != HashIndex::kNone) return &open_[number].ways;
    if (open_.size() >= kMost) return nullptr;
    numbers_.Add(HashOf(key), static_cast<uint32_t>(open_.size()));
    open_.push_back({key, {}});
    return &open_.back().ways;
  }

  std::vector<Open> open_;
  HashIndex numbers_;  // of open_
  uint64_t not_followed_ = 0;
};

}  // namespace tracefs::tally
