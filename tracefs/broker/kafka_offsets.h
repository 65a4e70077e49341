// KafkaOffsets: up to where the partitions of a topic are dealt with, where
// messages are acknowledged in any order and only a place can be committed.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

namespace tracefs {

// Used by one thread.
class KafkaOffsets {
 public:
  // A message that was fetched; the number for Acknowledge.
  uint64_t Take(int32_t partition, int64_t offset) {
    Partition& at = partitions_[partition];
    at.open.insert(offset);
    if (offset >= at.next) at.next = offset + 1;
    places_[++last_] = {partition, offset};
    return last_;
  }
  // Numbers from before Forget are of no interest.
  void Acknowledge(uint64_t number) {
    const auto found = places_.find(number);
    if (found == places_.end()) return;
    const auto [partition, offset] = found->second;
    places_.erase(found);
    partitions_[partition].open.erase(offset);
  }
  // Which message of each partition is the first that must come again, where
  // that has changed since Committed.
  std::vector<std::pair<int32_t, int64_t>> Due() const {
    std::vector<std::pair<int32_t, int64_t>> due;
    for (const auto& [number, partition] : partitions_) {
      if (partition.Done() != partition.committed) {
        due.emplace_back(number, partition.Done());
      }
    }
    return due;
  }
  void Committed(int32_t partition, int64_t offset) {
    const auto found = partitions_.find(partition);
    if (found != partitions_.end()) found->second.committed = offset;
  }
  // The partitions are others' now, who get what was not committed.
  void Forget() {
    partitions_.clear();
    places_.clear();
  }

 private:
  struct Partition {
    std::set<int64_t> open;  // fetched and not acknowledged
    int64_t next = 0;        // after the last one that was fetched
    int64_t committed = -1;

    int64_t Done() const { return open.empty() ? next : *open.begin(); }
  };

  uint64_t last_ = 0;
  std::map<int32_t, Partition> partitions_;
  std::unordered_map<uint64_t, std::pair<int32_t, int64_t>> places_;
};

}  // namespace tracefs
