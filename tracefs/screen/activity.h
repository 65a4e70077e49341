// Activity: what happened, counted by all that screens roll up and drill into.
// Memory is bounded, however many files there are: what is rare goes into one
// remainder, so that totals stay right.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tracefs/event/op.h"
#include "tracefs/tally/histogram.h"
#include "tracefs/tally/sums.h"

namespace tracefs::screen {

inline constexpr uint32_t kUnknown = UINT32_MAX;  // of pids and users

// What counted operations have in common.
struct ActivityKey {
  uint32_t source = 0;  // the mount or trace it is of
  Op op{};
  bool other = false;  // belongs to no key: all but `source` is void
  uint32_t error = 0;  // errno; 0: it succeeded
  uint32_t uid = kUnknown;
  uint32_t pid = kUnknown;
  uint32_t ppid = kUnknown;
  std::string comm;
  std::string path;  // empty: not known

  bool operator==(const ActivityKey&) const = default;
};

struct ActivityCounts : tally::TimedSums {
  // Written to the second file of an operation that counts with its first one:
  // bytes where rows are about files, else in `bytes` of the other file.
  uint64_t second = 0;
  tally::SparseHistogram durations;

  void Add(const ActivityCounts& other);
};

class ActivityTable {
 public:
  // Told apart at a time; then the rarer half of them is put together.
  static constexpr size_t kMaxCells = 16384;

  ActivityCounts& At(const ActivityKey& key);
  void Add(const ActivityTable& other);
  // Takes away all that is of that source.
  void Drop(uint32_t source);
  void Clear();

  using Cells = std::vector<std::pair<ActivityKey, ActivityCounts>>;
  const Cells& cells() const { return cells_; }

 private:
  struct Hash {
    size_t operator()(const ActivityKey& key) const;
  };
  void Fold(ActivityKey key, const ActivityCounts& counts);
  void Shrink();
  void Reindex();

  Cells cells_;
  std::unordered_map<ActivityKey, size_t, Hash> places_;
};

// The intervals of one or more sources, and all since they began. Used by one
// thread.
class Activity {
 public:
  // Sums of an interval, for a picture of what went before.
  struct Past {
    uint64_t ns = 0;
    uint64_t count = 0;
    uint64_t errors = 0;
    uint64_t bytes = 0;
    std::vector<uint64_t> octaves;  // durations by power of two
  };
  static constexpr size_t kMaxPast = 600;

  // Where the running interval of a source is counted.
  ActivityCounts& At(const ActivityKey& key) { return running_.At(key); }
  // Ends the interval of a source: what was counted in it can be shown.
  void EndInterval(uint32_t source, uint64_t ns);
  // Forgets all.
  void Reset();

  // The last whole interval of each source; or all.
  const ActivityTable& table(bool all) const { return all ? all_ : shown_; }
  uint64_t duration_ns(bool all) const;
  // Oldest first; of the first source.
  const std::vector<Past>& past() const { return past_; }

 private:
  ActivityTable running_;
  ActivityTable shown_;
  ActivityTable all_;
  std::vector<uint64_t> shown_ns_;  // by source
  std::vector<uint64_t> all_ns_;
  std::vector<Past> past_;
};

}  // namespace tracefs::screen
