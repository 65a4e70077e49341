// GroupStore: tallies by key in bounded memory, however many keys there are.
//
// Exact while there is room. Then Space-Saving in its batched form (Agarwal et
// al., "Mergeable Summaries", PODS 2012), as drivers/assembly/key_counts.h has
// it: each key has a weight; the median of the weights is taken off all, and
// keys whose weight is used up go into other(), with all that was counted for
// them. So all keys and other() together have every operation exactly once,
// what is counted for a key is exact since it came in, and at most `missed` of
// its operations before are in other().
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/hash_table.h"
#include "tracefs/query/group_values.h"

namespace tracefs::query {

// Used by one thread.
class GroupStore {
 public:
  struct Entry {
    uint64_t hash = 0;
    uint64_t weight = 0;
    uint64_t missed = 0;
    std::string key;
    Tally tally;
    std::unique_ptr<TallyDetails> details;  // if any are kept
  };

  GroupStore(size_t memory_bytes, bool details);

  // Many keys are far from the processor: told some time before they are asked
  // for, first all of some by FetchSlot and then all of these by FetchEntry,
  // they come at the same time.
  uint64_t Hash(std::string_view key) const;
  void FetchSlot(uint64_t hash) const;
  void FetchEntry(uint64_t hash) const;
  // The same for the entry at a place, and `soon` for its key.
  void FetchPlace(size_t place, bool soon) const;
  bool is_far() const { return entries_.size() > kNear; }

  // The place of a key, which is made if need be. Places hold until
  // generation() changes.
  size_t Find(std::string_view key) { return Find(key, Hash(key)); }
  size_t Find(std::string_view key, uint64_t hash);
  uint64_t generation() const { return generation_; }
  Entry& At(size_t place) { return entries_[place]; }
  // Instead of putting the smallest keys into other() when there is no more
  // room, passes all of them on, with everything counted for them, and starts
  // over.
  using Overflow = std::function<void(const std::deque<Entry>&)>;
  void OnFull(Overflow use) { on_full_ = std::move(use); }

  // Details of an entry have grown: looks whether there is still room.
  void CheckRoom();

  const std::deque<Entry>& entries() const { return entries_; }
  // Forgets all entries.
  void Clear();
  const Tally& other() const { return other_; }
  const TallyDetails& other_details() const { return other_details_; }
  uint64_t other_keys() const { return other_keys_; }  // that went there
  bool exact() const { return generation_ == 0 || on_full_; }

 private:
  static constexpr size_t kNear = 2048;  // that fit in a cache

  void Shed();
  size_t BytesOf(const Entry& entry) const;

  const size_t memory_bytes_;
  const bool details_;
  const uint64_t seed_;
  Overflow on_full_;
  std::deque<Entry> entries_;
  HashIndex places_;
  size_t key_bytes_ = 0;  // and details that were looked at
  uint64_t checked_ = 0;
  uint64_t shed_ = 0;
  uint64_t generation_ = 0;
  Tally other_;
  TallyDetails other_details_;
  uint64_t other_keys_ = 0;
};

}  // namespace tracefs::query
