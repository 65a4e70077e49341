// BlockRequests: what the block layer was asked to do, from the text of its
// tracepoints block_rq_issue and block_rq_complete, as perf script, trace-cmd
// report and /sys/kernel/tracing/trace print them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tracefs/base/status.h"

namespace tracefs::query {

struct BlockRequest {
  uint64_t begin = 0;      // bytes of the device
  uint64_t bytes = 0;      // 0: a flush of its cache
  uint64_t issued_ns = 0;  // of the clock of the text
  uint64_t done_ns = 0;
};

// Used by one thread.
class BlockRequests {
 public:
  // That are kept; others are counted.
  static constexpr size_t kMost = size_t{1} << 20;

  // A line of it. What is none of those events is passed over.
  void Take(std::string_view line);
  // After the last line.
  void Finish();
  // All lines of a file, then Finish.
  Status Read(const std::string& path);

  size_t size() const { return size_; }
  // That ended without having begun, began and did not end, or had no room.
  uint64_t not_whole() const { return not_whole_; }
  uint64_t no_room() const { return no_room_; }
  bool Knows(uint64_t device) const { return by_device_.contains(device); }

  // Calls `use` with those of a device that were under way between the two
  // moments; after Finish. False if there were so many of its requests that
  // only the latest were looked at.
  bool ForEach(uint64_t device, uint64_t from_ns, uint64_t to_ns,
               const std::function<void(const BlockRequest&)>& use) const;

 private:
  struct Device {
    std::vector<BlockRequest> done;  // Finish sorts them by their begins
    std::vector<uint64_t> latest;    // the latest end up to each
    // By their first byte; flushes, which have none, together.
    std::multimap<uint64_t, BlockRequest> under_way;
  };
  void Issue(uint64_t device, const BlockRequest& request);
  void Complete(uint64_t device, const BlockRequest& request);

  std::map<uint64_t, Device> by_device_;
  size_t size_ = 0;
  uint64_t not_whole_ = 0;
  uint64_t no_room_ = 0;
};

}  // namespace tracefs::query
