// TopModel: who does what how often and how slowly, from live operations: the
// numbers behind `tracefs-ctl top`. Memory is bounded, however many files there
// are: what is rare goes into one remainder.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tracefs/event/event.h"
#include "tracefs/format/record.h"
#include "tracefs/tools/ctl/options.h"

namespace tracefs {

// Durations in logarithmic steps with 2^kBits linear ones in each, so that a
// quantile is right to one part in 2^(kBits+1).
template <unsigned kBits>
class DurationHistogram {
 public:
  void Add(uint64_t ns) {
    ++buckets_[IndexOf(ns)];
    ++count_;
    if (ns > max_) max_ = ns;
  }
  void Add(const DurationHistogram& other) {
    for (size_t i = 0; i < kBuckets; ++i) buckets_[i] += other.buckets_[i];
    count_ += other.count_;
    if (other.max_ > max_) max_ = other.max_;
  }
  // The duration below which `percent` of them lie; 0 if there are none.
  uint64_t Percentile(unsigned percent) const {
    if (count_ == 0) return 0;
    const uint64_t wanted = (count_ * percent + 99) / 100;
    uint64_t seen = 0;
    for (size_t i = 0; i < kBuckets; ++i) {
      seen += buckets_[i];
      if (seen >= wanted && seen != 0) {
        const uint64_t middle = Middle(i);
        return middle < max_ ? middle : max_;
      }
    }
    return max_;
  }
  uint64_t max() const { return max_; }

 private:
  static constexpr uint64_t kLinear = uint64_t{1} << kBits;
  // Up to 2^40 ns, a quarter of an hour; what is longer counts as that.
  static constexpr unsigned kOctaves = 40 - kBits;
  static constexpr size_t kBuckets = (kOctaves + 1) * kLinear;

  static size_t IndexOf(uint64_t ns) {
    if (ns < kLinear) return ns;
    const auto top = static_cast<unsigned>(63 - __builtin_clzll(ns));
    if (top >= 40) return kBuckets - 1;
    const unsigned shift = top - kBits;
    return (shift + 1) * kLinear + ((ns >> shift) - kLinear);
  }
  static uint64_t Middle(size_t index) {
    if (index < kLinear) return index;
    const auto shift = static_cast<unsigned>(index / kLinear - 1);
    const uint64_t low = (kLinear + index % kLinear) << shift;
    return low + ((uint64_t{1} << shift) >> 1);
  }

  std::array<uint32_t, kBuckets> buckets_{};
  uint64_t count_ = 0;
  uint64_t max_ = 0;
};

// What was counted under one name.
struct TopCount {
  uint64_t count = 0;
  uint64_t errors = 0;
  uint64_t bytes = 0;  // read and written
  uint64_t ns = 0;
  DurationHistogram<4> durations;

  void Add(const TopCount& other);
  uint64_t In(TopOrder order) const;
};

// Names, the busiest of which are told apart.
class TopTable {
 public:
  // Told apart at a time; then the rarer half is put together.
  static constexpr size_t kMaxNames = 1024;
  static constexpr std::string_view kOther = "(other)";

  struct Row {
    std::string name;
    const TopCount* count;
  };

  TopCount& At(std::string_view name);
  // Moves all that `other` has counted here.
  void Take(TopTable* other);
  void Clear() { counts_.clear(); }
  // The first `most` rows in that order; they live until the table changes.
  std::vector<Row> Rows(TopOrder order, size_t most) const;
  size_t size() const { return counts_.size(); }

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  void Shrink();

  std::unordered_map<std::string, TopCount, Hash, std::equal_to<>> counts_;
};

// Used by one thread.
class TopModel {
 public:
  enum Kind { kOps, kProcesses, kFiles, kDirectories };
  static constexpr size_t kKinds = 4;

  // Counts an operation; one that is about to run does not count.
  void Add(const format::Record& record);
  void AddLost(uint64_t count) { lost_ += count; }

  // Ends an interval of that length: what was counted in it can be shown.
  void EndInterval(uint64_t ns);
  // Forgets all.
  void Reset();

  // The table of the last whole interval, or of all since the start or Reset.
  const TopTable& table(Kind kind, bool all) const {
    return all ? all_[kind] : shown_[kind];
  }
  const TopCount& total(bool all) const { return all ? all_total_ : total_; }
  uint64_t duration_ns(bool all) const { return all ? all_ns_ : shown_ns_; }
  uint64_t lost() const { return lost_; }

 private:
  std::array<TopTable, kKinds> running_;
  std::array<TopTable, kKinds> shown_;
  std::array<TopTable, kKinds> all_;
  TopCount running_total_;
  TopCount total_;
  TopCount all_total_;
  uint64_t shown_ns_ = 0;
  uint64_t all_ns_ = 0;
  uint64_t lost_ = 0;
  PathBuffer path_;
};

}  // namespace tracefs
